"""Classification counts at score thresholds, or of the top k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, overload

import polars as pl

from polars_rankeval._typing import Called, Frame, Names, Source
from polars_rankeval.blocks import RELEVANT, SIZE, Blocks, ratio
from polars_rankeval.errors import RankEvalError
from polars_rankeval.table import finish, number


@overload
def confusion(table: Frame, **options: Unpack[Called]) -> Frame: ...
@overload
def confusion(table: Source, **options: Unpack[Called]) -> pl.LazyFrame: ...
def confusion(
    table: Source,
    *,
    threshold: float | Sequence[float] | None = None,
    k: int | Sequence[int] | None = None,
    beta: float = 1.0,
    query: Names | None = "query_id",
    label: str = "label",
    score: str = "score",
    by: Names | None = None,
    rel: float | None = None,
    weight: str | None = None,
) -> pl.DataFrame | pl.LazyFrame:
    """Count the four outcomes of calling rows positive, at score thresholds or of the top k of every ranking.

    Parameters
    ----------
    table, query, label, score, by, rel, weight
        As in `pr_curve`. A row that was not retrieved is never called positive.
    threshold
        Call a row positive if its score is at least this; one or several.
    k
        Call the first k rows of each ranking positive; one or several. A tie block that k cuts counts by its share, the mean over the orders of its rows.
    beta
        Weight of recall in F.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: a row per ranking and threshold with the columns of `by` and `query`, `threshold` (Float64) or `k` (Int64), `tp`, `fp`, `fn`, `tn` (Float64) and
        `precision = tp / (tp + fp)`, `recall = tp / (tp + fn)`, `f = (1 + b^2) tp / ((1 + b^2) tp + b^2 fn + fp)`, `accuracy = (tp + tn) / all`,
        `specificity = tn / (tn + fp)`, `balanced_accuracy`, the mean of recall and specificity, and `mcc`, the correlation of calls and labels. A value with a zero denominator is null,
        and so is one made from a null: F without a precision is null.

    Raises
    ------
    RankEvalError
        As `pr_curve`; also unless one of `threshold` and `k` is given, and for a weight together with `k`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1, 0], "score": [0.9, 0.9, 0.4, 0.1]})
    >>> rk.confusion(table, threshold=0.4, query=None).select("tp", "fp", "fn", "tn", "f")
    shape: (1, 5)
    ┌─────┬─────┬─────┬─────┬─────┐
    │ tp  ┆ fp  ┆ fn  ┆ tn  ┆ f   │
    │ --- ┆ --- ┆ --- ┆ --- ┆ --- │
    │ f64 ┆ f64 ┆ f64 ┆ f64 ┆ f64 │
    ╞═════╪═════╪═════╪═════╪═════╡
    │ 2.0 ┆ 1.0 ┆ 0.0 ┆ 1.0 ┆ 0.8 │
    └─────┴─────┴─────┴─────┴─────┘
    """
    name, cuts = _cuts(threshold, k)
    if not number(beta, above=0):
        msg = f"beta must be a number above 0, got {beta!r}"
        raise RankEvalError(msg)
    if k is not None and weight is not None:
        msg = "the first k rows have no weights: give weight= with threshold="
        raise RankEvalError(msg)
    output = (
        name,
        *[
            "tp",
            "fp",
            "fn",
            "tn",
            "precision",
            "recall",
            "f",
            "accuracy",
            "specificity",
            "balanced_accuracy",
            "mcc",
        ],
    )
    blocks = Blocks.of(table, query, label, score, by, rel, weight, output=output)
    called = blocks.called_at(cuts) if name == "threshold" else blocks.called_first(cuts)
    tp, fp, fn, tn = (pl.col(c) for c in ("tp", "fp", "fn", "tn"))
    precision, recall, specificity = ratio(tp, tp + fp), ratio(tp, tp + fn), ratio(tn, tn + fp)
    f = ratio((1 + beta**2) * tp, (1 + beta**2) * tp + beta**2 * fn + fp)
    # Roots one by one: the product of four counts of a large table is beyond Float64's whole numbers.
    margins = (tp + fp).sqrt() * (tp + fn).sqrt() * (tn + fp).sqrt() * (tn + fn).sqrt()
    plan = (
        called.with_columns(
            (pl.col("positive") - tp).alias("fp"), (pl.col(RELEVANT) - tp).alias("fn")
        )
        .with_columns((pl.col(SIZE) - tp - fp - fn).alias("tn"))
        .select(
            *blocks.columns.shown,
            pl.col(name).cast(pl.Float64 if name == "threshold" else pl.Int64),
            tp,
            fp,
            fn,
            tn,
            precision.alias("precision"),
            recall.alias("recall"),
            pl.when(precision.is_not_null() & recall.is_not_null()).then(f).alias("f"),
            ratio(tp + tn, pl.col(SIZE)).alias("accuracy"),
            specificity.alias("specificity"),
            ((recall + specificity) / 2).alias("balanced_accuracy"),
            ratio(tp * tn - fp * fn, margins).alias("mcc"),
        )
    )
    keys = [*blocks.columns.shown, name]
    return finish(
        table, plan.sort(keys, descending=[False] * (len(keys) - 1) + [name == "threshold"])
    )


def _cuts(threshold: Any, k: Any) -> tuple[str, list[Any]]:
    if (threshold is None) == (k is None):
        msg = "give either threshold= or k=, one value or several"
        raise RankEvalError(msg)
    name, given = ("k", k) if threshold is None else ("threshold", threshold)
    cuts = list(given) if isinstance(given, Sequence) else [given]
    fits = all(
        number(c, above=0) and float(c).is_integer() if name == "k" else number(c) for c in cuts
    )
    if not cuts or not fits:
        words = "whole numbers of at least 1" if name == "k" else "finite numbers"
        msg = f"{name}= takes {words}, got {given!r}"
        raise RankEvalError(msg)
    return name, list(dict.fromkeys(cuts))
