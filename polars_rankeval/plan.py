"""The plan of `per_query`: rows are ranked, formulas ask for sums, sums meet the queries."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval import checks as ck
from polars_rankeval._typing import NoRelevant, Ties
from polars_rankeval.frame_terms import Ranked, relevant_name
from polars_rankeval.measures.names import Measure, parameters
from polars_rankeval.ranking import (
    CODE,
    LABEL,
    N,
    SCORE,
    START,
    TIE,
    normalise,
    query_code,
    rank_rows,
    storable,
)
from polars_rankeval.table import Columns
from polars_rankeval.terms import counts

QUERY_WEIGHT = "rk:weight"

FILL: dict[NoRelevant, float | None] = {"zero": 0.0, "one": 1.0, "null": None, "error": None}


@dataclass(frozen=True)
class Options:
    """What is asked of a table."""

    measures: list[Measure]
    ties: Ties
    no_relevant: NoRelevant
    judged_only: bool
    weight: str | None = None


def per_query_plan(
    table: pl.LazyFrame,
    columns: Columns,
    score: str,
    options: Options,
    span: tuple[int, int] | None = None,
) -> pl.LazyFrame:
    """One row per query: the keys, a column per measure and, if weights are asked for, the weight of the query.

    `span` is the least and the largest value of a lone integer query column, if known.
    """
    schema = table.collect_schema()
    ties = options.ties
    label = pl.col(columns.label)
    if not schema[columns.label].is_numeric():
        label = label.cast(pl.UInt8)  # Boolean, or a column of nulls
    value, score_dtype = pl.col(score), schema[score]
    if score_dtype == pl.Null:
        value, score_dtype = value.cast(pl.Float64), pl.Float64()
    if options.judged_only:
        # A row that is not retrieved and has no label is no row at all, and its query stays.
        value = pl.when(label >= 0).then(value)

    base = 0 if any(m.level == 0 for m in options.measures) else None
    ranked = Ranked(ties, base)
    values = {str(m): m.value(ranked.terms(m.level)) for m in options.measures}
    undefined = {
        str(m): empty
        for m in options.measures
        if (empty := m.undefined(ranked.terms(m.level))) is not None
    }

    checks = _checks(schema, columns, score, options)
    code = query_code(schema, columns.keys)
    queries = (
        table.group_by(columns.keys)
        .agg(
            *ck.counted(checks),
            value.count().cast(pl.Int64).alias(N),
            *(counts(label, x).sum().cast(pl.Int64).alias(relevant_name(x)) for x in ranked.levels),
            *([pl.col(options.weight).first().alias(QUERY_WEIGHT)] if options.weight else []),
        )
        .with_columns(code.expr.alias(CODE))
    )
    queries = (
        ck.raise_failed(queries, columns, checks, hashed=code.hashed)
        .sort(CODE)
        .with_columns((pl.col(N).cum_sum() - pl.col(N)).alias(START))
    )

    value, score_dtype = storable(normalise(value, score_dtype), score_dtype)
    rows = table.select(
        code.expr.alias(CODE),
        label.cast(pl.Float64).alias(LABEL),
        value.alias(SCORE),
        *([_text(schema, columns.doc).alias(TIE)] if ties == "doc" else []),
    )
    if ties == "order":
        rows = rows.with_row_index(TIE)
    if ties == "doc":
        rows = ck.guarded_by_documents(rows, table, columns)
    ranked_rows = rank_rows(
        rows,
        queries.select(CODE, START, N, *map(relevant_name, ranked.levels)),
        counts(pl.col(LABEL), base),
        score_dtype,
        ties,
        span,
    )
    result = ranked.totals(ranked_rows, rows, queries)
    if options.no_relevant == "error" and undefined:
        flags = {name: f"rk:undefined:{name}" for name in undefined}
        result = ck.raise_undefined(
            result.with_columns(empty.alias(flags[name]) for name, empty in undefined.items()),
            columns,
            flags,
        )
    fill = pl.lit(FILL[options.no_relevant], dtype=pl.Float64)
    for name, empty in undefined.items():
        values[name] = pl.when(empty).then(fill).otherwise(values[name])
    return result.select(
        *columns.keys,
        *(v.cast(pl.Float64).alias(name) for name, v in values.items()),
        *([QUERY_WEIGHT] if options.weight else []),
    )


def _checks(
    schema: pl.Schema, columns: Columns, score: str, options: Options
) -> list[ck.Check]:
    max_label = [
        {**parameters("ERR"), **dict(m.params)}["max_label"]
        for m in options.measures
        if m.name == "ERR"
    ]
    return [
        *ck.score_check(score, schema[score]),
        *ck.label_checks(columns.label, schema[columns.label], min(max_label, default=None)),
        *([ck.doc_check(columns.doc)] if options.ties == "doc" else []),
        *([ck.weight_check(options.weight, schema[options.weight])] if options.weight else []),
    ]


def _text(schema: pl.Schema, doc: str) -> pl.Expr:
    """Categories are compared by their text, as strings are: by bytes."""
    value = pl.col(doc)
    return value.cast(pl.String) if schema[doc] in (pl.Categorical, pl.Enum) else value
