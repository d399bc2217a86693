"""The plan of `per_query`: rows are ranked, formulas ask for sums, sums meet the queries."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval import checks as ck
from polars_rankeval._typing import NoRelevant, Ties
from polars_rankeval.checks import CODE
from polars_rankeval.frame_terms import Ranked, weighted_blocks
from polars_rankeval.measures.names import Measure
from polars_rankeval.measures.registry import parameters
from polars_rankeval.packed import pack
from polars_rankeval.ranking import (
    SCORE,
    SPAN,
    START,
    TIE,
    N,
    Rows,
    dense_rank,
    query_code,
    rank_rows,
    relevant_name,
)
from polars_rankeval.table import Columns, label_number

QUERY_WEIGHT = "rk:weight"

FILL: dict[NoRelevant, float | None] = {"zero": 0.0, "one": 1.0, "null": None, "error": None}


@dataclass(frozen=True)
class Options:
    """What is asked of a table."""

    measures: list[Measure]
    ties: Ties
    no_relevant: NoRelevant
    judged_only: bool
    #: weight of the query, which the result keeps
    weight: str | None = None
    #: weight of the row, which measures take into account
    row_weight: str | None = None
    #: documents are known to stand once in a query
    unique: bool = False


def per_query_plan(
    table: pl.LazyFrame,
    columns: Columns,
    score: str,
    options: Options,
    *,
    at_hand: bool = False,
) -> pl.LazyFrame:
    """One row per query: the keys, a column per measure and, if weights are asked for, the weight of the query.

    `at_hand` says that the rows are in memory and the result is wanted now.
    """
    table = columns.keyed(table)
    schema = table.collect_schema()
    ties = options.ties
    label = label_number(schema, columns.label)
    value, score_dtype = pl.col(score), schema[score]
    if score_dtype == pl.Null:
        value, score_dtype = value.cast(pl.Float64), pl.Float64()
    if options.judged_only:
        # A row that is not retrieved and has no label is no row at all, and its query stays.
        value = pl.when(label >= 0).then(value)

    base = min((x for m in options.measures if (x := m.lowest_level) is not None), default=None)
    ranked = Ranked(ties, base, weighted=options.row_weight is not None)
    values = {str(m): m.value(ranked.terms(m.level)) for m in options.measures}
    undefined = {
        str(m): empty
        for m in options.measures
        if (empty := m.undefined(ranked.terms(m.level))) is not None
    }

    code = query_code(schema, columns.keys)
    retrieved = value.is_not_null()
    frame, tie = table, pl.lit(0)
    storable = dense_rank(value, score_dtype)
    if storable is not None:
        frame = frame.with_columns(storable.alias(SCORE))
        value, score_dtype = pl.col(SCORE), pl.UInt32()
    if ties == "order":
        frame, tie = frame.with_row_index(TIE), pl.col(TIE)
    if ties == "doc":
        tie = _text(schema, columns.doc)
    weight = None if options.row_weight is None else pl.col(options.row_weight).cast(pl.Float64)
    rows = Rows(frame, code.expr, label, value, score_dtype, retrieved, tie, weight, at_hand)
    if at_hand and options.weight is None:
        rows = pack(rows, columns.keys, code)

    queries = rows.queries(
        columns.keys,
        ranked.levels,
        *([pl.col(options.weight).first().alias(QUERY_WEIGHT)] if options.weight else []),
    )
    known = queries.collect_schema()
    refusals = [ck.refuse(table, columns.keys, _checks(schema, columns, score, options), known)]
    if ties == "doc" and not options.unique:
        refusals.append(ck.refuse_duplicates(table, columns, known))
    # Sorted last: what is put together is not known to be in order.
    start = (pl.col(SPAN).cum_sum() - pl.col(SPAN)).alias(START)
    queries = ck.guarded(queries, *refusals).sort(CODE).with_columns(start).cache()
    if code.hashed:
        queries = ck.refuse_shared_codes(queries, columns.keys)

    of_rows = queries.select(CODE, START, N, *map(relevant_name, ranked.levels))
    if weight is None:
        ranked_rows = rank_rows(rows, of_rows, base, ties)
    else:
        ranked_rows = weighted_blocks(rows, ranked.levels, of_rows)
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
        *columns.shown,
        *(v.cast(pl.Float64).alias(name) for name, v in values.items()),
        *([QUERY_WEIGHT] if options.weight else []),
    )


def _checks(schema: pl.Schema, columns: Columns, score: str, options: Options) -> list[ck.Check]:
    max_label = [
        {**parameters("ERR"), **dict(m.params)}["max_label"]
        for m in options.measures
        if m.name == "ERR"
    ]
    return [
        *ck.query_checks(columns.query),
        *ck.score_checks(score, schema[score]),
        *ck.label_checks(columns.label, schema[columns.label], min(max_label, default=None)),
        *(
            ck.row_weight_checks(options.row_weight, schema[options.row_weight])
            if options.row_weight
            else []
        ),
        *(ck.doc_checks(columns.doc) if options.ties == "doc" else []),
        *(
            ck.query_weight_checks(options.weight, schema[options.weight], columns.keys)
            if options.weight
            else []
        ),
    ]


def _text(schema: pl.Schema, doc: str) -> pl.Expr:
    """Categories are compared by their text, as strings are: by bytes."""
    value = pl.col(doc)
    return value.cast(pl.String) if schema[doc] in (pl.Categorical, pl.Enum) else value
