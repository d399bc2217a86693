"""Measures of every query of a table, and their means."""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from polars_rankeval._typing import NO_RELEVANT, TIES, Frame, Names, NoRelevant, Ties
from polars_rankeval.checks import (
    Check,
    doc_checks,
    guarded,
    label_checks,
    query_checks,
    refuse,
    refuse_duplicates,
    score_checks,
)
from polars_rankeval.errors import RankEvalError
from polars_rankeval.measures.names import Measure, parse_all
from polars_rankeval.plan import QUERY_WEIGHT, Options, per_query_plan
from polars_rankeval.ranking import normalise
from polars_rankeval.sources import scan
from polars_rankeval.table import Columns, choice, names


def per_query(
    table: Frame,
    *measures: str | Measure,
    query: Names = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
    ties: Ties = "block",
    no_relevant: NoRelevant = "zero",
    judged_only: bool = False,
) -> Frame:
    """Compute measures of every query.

    Parameters
    ----------
    table
        One row per (query, document): the query columns (not null), `label` (Boolean or number, null for not judged) and `score`
        (number, null for not retrieved). Anything else that `rk.scan` takes is evaluated lazily.
    measures
        Names such as `"AP"`, `"nDCG@10"`, `"P(rel=2)@5"`, or `rk.Measure`.
    query, doc, label, score
        Columns. Several query columns form one key. Several score columns are evaluated each, and told apart by a column `score`.
        `doc` is read only by `ties="doc"`.
    by
        Columns of groups: a query is ranked in each group on its own.
    ties
        What tied scores mean: `"block"`, `"expected"`, `"best"`, `"worst"`, `"order"` or `"doc"`.
    no_relevant
        Value of a measure that a query without relevant rows leaves undefined: `"zero"`, `"null"`, `"one"` or `"error"`.
    judged_only
        Drop rows that were not judged (null or negative label) before ranking.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: a row per query, sorted by its key, with the columns of `by`, of `query` and a Float64 column per measure, named by its
        canonical name.

    Raises
    ------
    RankEvalError
        For unknown measures and parameters, and when the plan runs for NaN scores, NaN or infinite labels, null queries.
    polars.exceptions.ColumnNotFoundError
        If a column is missing.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame(
    ...     {"query_id": [1, 1, 1, 2, 2], "label": [1, 0, 1, 0, 1], "score": [0.9, 0.9, 0.4, 0.8, None]}
    ... )
    >>> rk.per_query(table, "AP", "RR", "nDCG@10")
    shape: (2, 4)
    ┌──────────┬──────────┬──────┬──────────┐
    │ query_id ┆ AP       ┆ RR   ┆ nDCG@10  │
    │ ---      ┆ ---      ┆ ---  ┆ ---      │
    │ i64      ┆ f64      ┆ f64  ┆ f64      │
    ╞══════════╪══════════╪══════╪══════════╡
    │ 1        ┆ 0.583333 ┆ 0.75 ┆ 0.806574 │
    │ 2        ┆ 0.0      ┆ 0.0  ┆ 0.0      │
    └──────────┴──────────┴──────┴──────────┘
    """
    lazy: pl.LazyFrame
    columns: Columns
    options: Options
    lazy, columns, options = _prepare(
        table,
        measures,
        query=query,
        doc=doc,
        label=label,
        score=score,
        by=by,
        ties=ties,
        no_relevant=no_relevant,
        judged_only=judged_only,
    )
    plan = _per_score(table, lazy, columns, options)
    return _finish(table, plan.sort(*columns.by, *_score_column(columns), *columns.query))


def evaluate(
    table: Frame,
    *measures: str | Measure,
    query: Names = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
    ties: Ties = "block",
    no_relevant: NoRelevant = "zero",
    judged_only: bool = False,
    weight: str | None = None,
) -> Frame:
    """Compute the mean of measures over the queries, of all or of each group.

    Parameters
    ----------
    table, measures, query, doc, label, score, by, ties, no_relevant, judged_only
        As in `per_query`.
    weight
        Column with the weight of the query, the same in all its rows: the mean becomes a weighted one.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: one row, or one per group sorted by it, with the columns of `by`, `score` if there are several score columns, `queries` (UInt32,
        the number of queries) and a Float64 column per measure. Nulls are skipped by the mean; a mean of nothing is null.

    Raises
    ------
    RankEvalError
        As `per_query`; also for a weight that is null, negative, not finite, or not the same in all rows of a query.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame(
    ...     {"query_id": [1, 1, 1, 2, 2], "label": [1, 0, 1, 0, 1], "score": [0.9, 0.9, 0.4, 0.8, None]}
    ... )
    >>> rk.evaluate(table, "AP", "RR")
    shape: (1, 3)
    ┌─────────┬──────────┬───────┐
    │ queries ┆ AP       ┆ RR    │
    │ ---     ┆ ---      ┆ ---   │
    │ u32     ┆ f64      ┆ f64   │
    ╞═════════╪══════════╪═══════╡
    │ 2       ┆ 0.291667 ┆ 0.375 │
    └─────────┴──────────┴───────┘
    """
    lazy: pl.LazyFrame
    columns: Columns
    options: Options
    lazy, columns, options = _prepare(
        table,
        measures,
        query=query,
        doc=doc,
        label=label,
        score=score,
        by=by,
        ties=ties,
        no_relevant=no_relevant,
        judged_only=judged_only,
        weight=weight,
    )
    queries = _per_score(table, lazy, columns, options)
    means = [
        pl.len().cast(pl.UInt32).alias("queries"),
        *(_mean(pl.col(str(m)), weighted=weight is not None) for m in options.measures),
    ]
    groups = [*columns.by, *_score_column(columns)]
    if groups:
        return _finish(table, queries.group_by(groups).agg(means).sort(groups))
    return _finish(table, queries.select(means))


def tie_blocks(
    table: Frame,
    *,
    query: Names = "query_id",
    label: str = "label",
    score: str = "score",
    by: Names | None = None,
) -> Frame:
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
    lazy = scan(table)
    schema = lazy.collect_schema()
    columns = Columns.of(
        schema,
        query=query,
        doc="",
        label=label,
        score=score,
        by=by,
        output=(score, "lo", "hi", "size", "relevant"),
    )
    relevant = (pl.col(label) if schema[label].is_numeric() else pl.col(label).cast(pl.UInt8)) > 0
    keys = columns.keys
    plan = (
        guarded(lazy, refuse(lazy, keys, _value_checks(schema, columns), schema))
        .filter(pl.col(score).is_not_null())
        .group_by(*keys, normalise(pl.col(score), schema[score]))
        .agg(pl.len().cast(pl.Int64).alias("size"), relevant.sum().cast(pl.Int64).alias("relevant"))
        .sort(*keys, score, descending=[False] * len(keys) + [True])
        .with_columns(pl.col("size").cum_sum().over(keys).alias("hi"))
        .select(
            *keys, score, (pl.col("hi") - pl.col("size") + 1).alias("lo"), "hi", "size", "relevant"
        )
    )
    return _finish(table, plan)


def check(
    table: Frame,
    *,
    query: Names = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
) -> Frame:
    """Validate a table in full, and pass it on unchanged.

    Costs a pass over the values and, if the table has the document column, one over the documents.

    Parameters
    ----------
    table, query, doc, label, score, by
        As in `per_query`. `doc` need not exist; if it does, it may not be null, nor twice in one query.

    Returns
    -------
    DataFrame or LazyFrame
        The table as it came. The plan of a LazyFrame raises when it runs.

    Raises
    ------
    RankEvalError
        For null queries, NaN scores, NaN or infinite labels, null documents, duplicate (query, document) pairs.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"query_id": [1, 1], "label": [1, 0], "score": [0.9, float("nan")]})
    >>> rk.check(table)
    Traceback (most recent call last):
    ...
    polars_rankeval.errors.RankEvalError: score column 'score' is NaN in 1 row, for example in query 1: NaN has no place in a ranking; use null for rows that were not retrieved
    """
    lazy = scan(table)
    schema = lazy.collect_schema()
    columns = Columns.of(schema, query=query, doc=doc, label=label, score=score, by=by)
    checks: list[Check] = _value_checks(schema, columns)
    if doc not in schema:
        return _finish(table, guarded(lazy, refuse(lazy, columns.keys, checks, schema)))
    values = refuse(lazy, columns.keys, [*checks, *doc_checks(doc)], schema)
    return _finish(table, guarded(lazy, values, refuse_duplicates(lazy, columns, schema)))


def _value_checks(schema: pl.Schema, columns: Columns) -> list[Check]:
    return [
        *query_checks(columns.query),
        *(check for score in columns.scores for check in score_checks(score, schema[score])),
        *label_checks(columns.label, schema[columns.label]),
    ]


def _prepare(
    table: Any,
    measures: tuple[str | Measure, ...],
    *,
    query: Names,
    doc: str,
    label: str,
    score: Names,
    by: Names | None,
    ties: Ties,
    no_relevant: NoRelevant,
    judged_only: bool,
    weight: str | None = None,
) -> tuple[pl.LazyFrame, Columns, Options]:
    """Check what was asked against the schema of the table."""
    choice("ties", ties, TIES)
    choice("no_relevant", no_relevant, NO_RELEVANT)
    options = Options(parse_all(measures), ties, no_relevant, judged_only, weight)
    lazy = scan(table)
    schema = lazy.collect_schema()
    columns = Columns.of(
        schema,
        query=query,
        doc=doc,
        label=label,
        score=score,
        by=by,
        others=[*([doc] if ties == "doc" else []), *([weight] if weight else [])],
        output=[*map(str, options.measures), *(["score"] if len(names(score)) > 1 else [])],
    )
    if weight is not None and not schema[weight].is_numeric():
        msg = f"weight column {weight!r} has dtype {schema[weight]}, but a weight is a number"
        raise RankEvalError(msg)
    return lazy, columns, options


def _per_score(table: Any, lazy: pl.LazyFrame, columns: Columns, options: Options) -> pl.LazyFrame:
    """The plan for each score column, one below the other."""
    span, at_hand = _span(table, columns), isinstance(table, pl.DataFrame)
    plans = [
        per_query_plan(lazy, columns, s, options, span=span, at_hand=at_hand)
        for s in columns.scores
    ]
    if len(plans) == 1:
        return plans[0]
    return pl.concat(
        plan.with_columns(pl.lit(s).alias("score")).select(
            *columns.by, "score", pl.exclude(*columns.by, "score")
        )
        for plan, s in zip(plans, columns.scores, strict=True)
    )


def _score_column(columns: Columns) -> list[str]:
    return ["score"] if len(columns.scores) > 1 else []


def _span(table: Any, columns: Columns) -> tuple[int, int] | None:
    """Least and largest query code where the rows are at hand and looking costs nothing: they may halve the sort keys."""
    if not isinstance(table, pl.DataFrame) or len(columns.keys) != 1 or table.is_empty():
        return None
    query = table[columns.keys[0]]
    if not query.dtype.is_integer() or query.dtype in (pl.UInt64, pl.Int128, pl.UInt128):
        return None
    low, high = cast("int | None", query.min()), cast("int | None", query.max())
    return None if low is None or high is None else (low, high)


def _mean(value: pl.Expr, *, weighted: bool) -> pl.Expr:
    """Mean over queries that skips nulls; null if there is nothing to mean."""
    if not weighted:
        return value.mean()
    weight = pl.when(value.is_not_null()).then(pl.col(QUERY_WEIGHT))
    total = weight.cast(pl.Float64).sum()
    return pl.when(total > 0).then((value * weight).sum() / total).alias(value.meta.output_name())


def _finish(table: Frame, plan: pl.LazyFrame) -> Frame:
    """DataFrame in, DataFrame out."""
    if isinstance(table, pl.DataFrame):
        return plan.collect()
    return plan
