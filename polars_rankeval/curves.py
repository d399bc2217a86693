"""Tie blocks, precision-recall curves and ROC curves."""

from __future__ import annotations

from typing import Unpack, overload

import polars as pl

from polars_rankeval._typing import Curve, Frame, Names, Ranked, Source
from polars_rankeval.blocks import RELEVANT, SIZE, Blocks, ratio
from polars_rankeval.table import finish


@overload
def tie_blocks(table: Frame, **options: Unpack[Ranked]) -> Frame: ...
@overload
def tie_blocks(table: Source, **options: Unpack[Ranked]) -> pl.LazyFrame: ...
def tie_blocks(
    table: Source,
    *,
    query: Names | None = "query_id",
    label: str = "label",
    score: str = "score",
    by: Names | None = None,
) -> pl.DataFrame | pl.LazyFrame:
    """List the tie blocks of every query: the sets of retrieved rows with one score.

    Parameters
    ----------
    table, query, label, score, by
        As in `per_query`.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: a row per block, sorted by `by`, `query` and descending score, with the columns of `by` and `query`, the score, and Int64 columns
        `lo` and `hi` (positions, from 1), `size` and `relevant` (rows of the block with label > 0).

    Raises
    ------
    RankEvalError
        As `per_query`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"query_id": [1, 1, 1], "label": [1, 0, 1], "score": [0.9, 0.9, 0.4]})
    >>> rk.tie_blocks(table)
    shape: (2, 6)
    ┌──────────┬───────┬─────┬─────┬──────┬──────────┐
    │ query_id ┆ score ┆ lo  ┆ hi  ┆ size ┆ relevant │
    │ ---      ┆ ---   ┆ --- ┆ --- ┆ ---  ┆ ---      │
    │ i64      ┆ f64   ┆ i64 ┆ i64 ┆ i64  ┆ i64      │
    ╞══════════╪═══════╪═════╪═════╪══════╪══════════╡
    │ 1        ┆ 0.9   ┆ 1   ┆ 2   ┆ 2    ┆ 1        │
    │ 1        ┆ 0.4   ┆ 3   ┆ 3   ┆ 1    ┆ 1        │
    └──────────┴───────┴─────┴─────┴──────┴──────────┘
    """
    blocks = Blocks.of(
        table, query, label, score, by, output=(score, "lo", "hi", "size", "relevant")
    )
    so_far = pl.col(SIZE).cum_sum().over(blocks.columns.keys)
    plan = blocks.frame().select(
        *blocks.columns.shown,
        score,
        (so_far - pl.col(SIZE) + 1).alias("lo"),
        so_far.alias("hi"),
        pl.col(SIZE).alias("size"),
        pl.col(RELEVANT).alias("relevant"),
    )
    return finish(table, plan)


@overload
def pr_curve(table: Frame, **options: Unpack[Curve]) -> Frame: ...
@overload
def pr_curve(table: Source, **options: Unpack[Curve]) -> pl.LazyFrame: ...
def pr_curve(
    table: Source,
    *,
    query: Names | None = "query_id",
    label: str = "label",
    score: str = "score",
    by: Names | None = None,
    rel: float | None = None,
    weight: str | None = None,
    endpoint: bool = False,
    drop_collinear: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Compute the precision-recall curve of every ranking: one point per tie block.

    Parameters
    ----------
    table, query, label, score, by
        As in `per_query`; with `query=None` there is one curve for the table, or for each group.
    rel
        The least label that is relevant; by default every label above 0 is.
    weight
        Column with the weight of each row: counts become sums of weights, and rows without weight are left out.
    endpoint
        Add the conventional point of recall 0 and precision 1, with a null threshold, before the others.
    drop_collinear
        Leave out points between two others of the same recall.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: the columns of `by` and `query`, `threshold` (the score of the block), `tp` and `fp` (rows with at least that score that are relevant, that are not;
        Int64, or Float64 with weights), `precision = tp / (tp + fp)` and `recall = tp / R`, where R counts relevant rows that were not retrieved, too. Recall is null if there are
        no relevant rows.

    Raises
    ------
    RankEvalError
        As `per_query`; also for a weight that is null, negative or not finite.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1, 0], "score": [0.9, 0.9, 0.4, 0.1]})
    >>> rk.pr_curve(table, query=None)
    shape: (3, 5)
    ┌───────────┬─────┬─────┬───────────┬────────┐
    │ threshold ┆ tp  ┆ fp  ┆ precision ┆ recall │
    │ ---       ┆ --- ┆ --- ┆ ---       ┆ ---    │
    │ f64       ┆ i64 ┆ i64 ┆ f64       ┆ f64    │
    ╞═══════════╪═════╪═════╪═══════════╪════════╡
    │ 0.9       ┆ 1   ┆ 1   ┆ 0.5       ┆ 0.5    │
    │ 0.4       ┆ 2   ┆ 1   ┆ 0.666667  ┆ 1.0    │
    │ 0.1       ┆ 2   ┆ 2   ┆ 0.5       ┆ 1.0    │
    └───────────┴─────┴─────┴───────────┴────────┘
    """
    blocks = Blocks.of(
        table, query, label, score, by, rel, weight,
        output=("threshold", "tp", "fp", "precision", "recall"),
    )  # fmt: skip
    keys, tp, fp = blocks.columns.keys, pl.col("tp"), pl.col("fp")
    plan = blocks.points(endpoint=endpoint)
    if drop_collinear:
        before, after = tp.shift(1).over(keys), tp.shift(-1).over(keys)
        plan = plan.filter(((before == tp) & (after == tp)).fill_null(False).not_())
    plan = blocks.beside_totals(plan, retrieved=False).select(
        *blocks.columns.shown,
        "threshold",
        "tp",
        "fp",
        pl.when(pl.col("threshold").is_null())
        .then(1.0)
        .otherwise(ratio(tp, tp + fp))
        .alias("precision"),
        ratio(tp, pl.col(RELEVANT)).alias("recall"),
    )
    return finish(table, plan)


@overload
def roc_curve(table: Frame, **options: Unpack[Curve]) -> Frame: ...
@overload
def roc_curve(table: Source, **options: Unpack[Curve]) -> pl.LazyFrame: ...
def roc_curve(
    table: Source,
    *,
    query: Names | None = "query_id",
    label: str = "label",
    score: str = "score",
    by: Names | None = None,
    rel: float | None = None,
    weight: str | None = None,
    endpoint: bool = False,
    drop_collinear: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Compute the ROC curve of every ranking: one point per tie block. The area under it is `AUC`.

    Parameters
    ----------
    table, query, label, score, by, rel, weight
        As in `pr_curve`.
    endpoint
        Add the point where nothing is retrieved (both rates 0), with a null threshold, before the others.
    drop_collinear
        Leave out points on the straight line between their neighbours.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: the columns of `by` and `query`, `threshold`, `tp`, `fp`, `tpr = tp / relevant` and `fpr = fp / others` among the retrieved rows, as `AUC` counts them. A
        rate of nothing is null.

    Raises
    ------
    RankEvalError
        As `pr_curve`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1, 0], "score": [0.9, 0.9, 0.4, 0.1]})
    >>> rk.roc_curve(table, query=None)
    shape: (3, 5)
    ┌───────────┬─────┬─────┬─────┬─────┐
    │ threshold ┆ tp  ┆ fp  ┆ tpr ┆ fpr │
    │ ---       ┆ --- ┆ --- ┆ --- ┆ --- │
    │ f64       ┆ i64 ┆ i64 ┆ f64 ┆ f64 │
    ╞═══════════╪═════╪═════╪═════╪═════╡
    │ 0.9       ┆ 1   ┆ 1   ┆ 0.5 ┆ 0.5 │
    │ 0.4       ┆ 2   ┆ 1   ┆ 1.0 ┆ 0.5 │
    │ 0.1       ┆ 2   ┆ 2   ┆ 1.0 ┆ 1.0 │
    └───────────┴─────┴─────┴─────┴─────┘
    """
    blocks = Blocks.of(
        table, query, label, score, by, rel, weight, output=("threshold", "tp", "fp", "tpr", "fpr")
    )
    keys, tp, fp = blocks.columns.keys, pl.col("tp"), pl.col("fp")
    plan = blocks.points(endpoint=endpoint)
    if drop_collinear:
        rise, run = tp - tp.shift(1).over(keys), fp - fp.shift(1).over(keys)
        next_rise, next_run = tp.shift(-1).over(keys) - tp, fp.shift(-1).over(keys) - fp
        plan = plan.filter((rise * next_run == next_rise * run).fill_null(False).not_())
    plan = blocks.beside_totals(plan, retrieved=True).select(
        *blocks.columns.shown,
        "threshold",
        "tp",
        "fp",
        ratio(tp, pl.col(RELEVANT)).alias("tpr"),
        ratio(fp, pl.col(SIZE) - pl.col(RELEVANT)).alias("fpr"),
    )
    return finish(table, plan)
