"""The plan of `per_query`: rows are ranked, formulas ask for sums, sums meet the queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from polars_rankeval import checks as ck
from polars_rankeval._typing import AtHand, NoRelevant, Ties
from polars_rankeval.checks import CODE
from polars_rankeval.frame_terms import Ranked, weighted_blocks
from polars_rankeval.measures.names import Measure
from polars_rankeval.measures.registry import parameters
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
#: Puts rows at hand in order, given also the key of the query, from CODE, None if that does not tell.
Order: TypeAlias = Callable[[Rows, pl.Expr | None], Rows]

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


class _Formulas:
    """The formulas of some measures, over sums that are the same for every table."""

    def __init__(self, options: Options) -> None:
        measures = options.measures
        lowest = (x for m in measures if (x := m.lowest_level) is not None)
        #: the level of the rows that are ranked
        self.base = min(lowest, default=None)
        self.sums = Ranked(options.ties, self.base, weighted=options.row_weight is not None)
        self.values = {str(m): m.value(self.sums.terms(m.level)) for m in measures}
        #: where measures are undefined
        self.undefined = {
            str(m): empty
            for m in measures
            if (empty := m.undefined(self.sums.terms(m.level))) is not None
        }


@dataclass(frozen=True)
class _Ranking:
    """What formulas are computed from, once all rows were ordered."""

    #: one row per query: the keys, CODE, N and what counts at each level
    queries: pl.LazyFrame
    #: the retrieved rows that count, with their positions
    ranked: pl.LazyFrame
    #: the rows of the table, of which those with a label are needed still
    rows: Rows


def per_query_plan(
    table: pl.LazyFrame,
    columns: Columns,
    score: str,
    options: Options,
    *,
    at_hand: AtHand = None,
    order: Order | None = None,
) -> pl.LazyFrame:
    """One row per query: the keys, a column per measure and, if weights are asked for, the weight of the query.

    `at_hand` says that the rows are in memory and the result is wanted now; `order` puts them in order if theirs is known.
    """
    formulas = _Formulas(options)
    ranking = _ranked(table, columns, score, options, formulas, at_hand, order)
    return _measured(ranking, columns, options, formulas)


def _ranked(
    table: pl.LazyFrame,
    columns: Columns,
    score: str,
    options: Options,
    formulas: _Formulas,
    at_hand: AtHand,
    order: Order | None,
) -> _Ranking:
    """Order the rows of a table, and count those of its queries."""
    table = columns.keyed(table)
    schema = table.collect_schema()
    ties, levels = options.ties, formulas.sums.levels
    label = label_number(schema, columns.label)
    value, score_dtype = pl.col(score), schema[score]
    if score_dtype == pl.Null:
        value, score_dtype = value.cast(pl.Float64), pl.Float64()
    if options.judged_only:
        # A row that is not retrieved and has no label is no row at all, and its query stays.
        value = pl.when(label >= 0).then(value)

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
    weighted = options.weight is not None or weight is not None
    if at_hand and not weighted:
        # Here, since import polars_rankeval should take no time, and not all rows are at hand.
        from polars_rankeval.ordered import in_order
        from polars_rankeval.packed import pack

        query = None if code.value is None else code.value.alias(columns.keys[0])
        rows = order(rows, query) if order else in_order(rows, query) or pack(rows, query)

    queries = rows.queries(
        columns.keys,
        levels,
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

    of_rows = queries.select(CODE, START, N, *map(relevant_name, levels))
    if weight is None:
        ranked = rank_rows(rows, of_rows, formulas.base, ties)
    else:
        ranked = weighted_blocks(rows, weight, levels, of_rows)
    return _Ranking(queries, ranked, rows)


def _measured(
    ranking: _Ranking, columns: Columns, options: Options, formulas: _Formulas
) -> pl.LazyFrame:
    """Compute the formulas."""
    values, undefined = dict(formulas.values), formulas.undefined
    result = formulas.sums.totals(ranking.ranked, ranking.rows, ranking.queries)
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
