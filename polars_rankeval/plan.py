"""The plan of `per_query`: rows are ranked, formulas ask for sums, sums meet the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_rankeval import checks as ck
from polars_rankeval._typing import NoRelevant, Ties
from polars_rankeval.checks import CODE
from polars_rankeval.frame_terms import Ranked, relevant_name, weighted_blocks
from polars_rankeval.measures.names import Measure, parameters
from polars_rankeval.ranking import (
    SCORE,
    START,
    TIE,
    N,
    Rows,
    dense_rank,
    query_code,
    rank_rows,
)
from polars_rankeval.table import Columns, label_number
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
    #: weight of the query, which the result keeps
    weight: str | None = None
    #: weight of the row, which measures take into account
    row_weight: str | None = None
    #: documents are known to stand once in a query
    unique: bool = False


class Formulas:
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
class Ranking:
    """What formulas are computed from, once all rows were ordered."""

    #: one row per query: the keys, CODE, N and what counts at each level
    queries: pl.LazyFrame
    #: the retrieved rows that count, with their positions
    ranked: pl.LazyFrame
    #: the rows of the table, of which those with a label are needed still
    rows: Rows

    def collected(self) -> Ranking:
        """The same, computed: small, since only rows with a label are kept."""
        labelled = self.rows.frame.filter(self.rows.label.is_not_null())
        plans = [self.queries, self.ranked, labelled]
        queries, ranked, labelled = (
            frame.lazy() for frame in pl.collect_all(plans, engine="in-memory")
        )
        return Ranking(queries, ranked, replace(self.rows, frame=labelled))

    @staticmethod
    def joined(parts: Sequence[Ranking]) -> Ranking:
        """One for the queries of all, whose codes rise from each part to the next."""
        return Ranking(
            pl.concat(part.queries for part in parts),
            pl.concat(part.ranked for part in parts),
            replace(parts[0].rows, frame=pl.concat(part.rows.frame for part in parts)),
        )


def per_query_plan(
    table: pl.LazyFrame,
    columns: Columns,
    score: str,
    options: Options,
    *,
    span: tuple[int, int] | None = None,
    at_hand: bool = False,
) -> pl.LazyFrame:
    """One row per query: the keys, a column per measure and, if weights are asked for, the weight of the query.

    `span` is the least and the largest value of a lone integer query column, if known; `at_hand` says that the rows are in memory and
    the result is wanted now.
    """
    formulas = Formulas(options)
    ranking = rank_table(table, columns, score, options, formulas, span=span, at_hand=at_hand)
    return measured(ranking, columns, options, formulas)


def rank_table(
    table: pl.LazyFrame,
    columns: Columns,
    score: str,
    options: Options,
    formulas: Formulas,
    *,
    span: tuple[int, int] | None = None,
    at_hand: bool = False,
) -> Ranking:
    """Order the rows of a table, and count those of its queries; the first half of `per_query_plan`."""
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
    row_weight = None if options.row_weight is None else pl.col(options.row_weight).cast(pl.Float64)

    def size(chosen: pl.Expr) -> pl.Expr:
        """The number of these rows, or their weight."""
        return (
            chosen.sum().cast(pl.Int64) if row_weight is None else row_weight.filter(chosen).sum()
        )

    queries = table.group_by(columns.keys).agg(
        size(value.is_not_null()).alias(N),
        *(size(counts(label, x)).alias(relevant_name(x)) for x in levels),
        *([pl.col(options.weight).first().alias(QUERY_WEIGHT)] if options.weight else []),
    )
    refusal = ck.refuse(
        table, columns.keys, _checks(schema, columns, score, options), queries.collect_schema()
    )
    queries = (
        ck.guarded(queries, refusal)
        .with_columns(code.expr.alias(CODE))
        .sort(CODE)
        .with_columns((pl.col(N).cum_sum() - pl.col(N)).alias(START))
    ).cache()
    if code.hashed:
        queries = ck.refuse_shared_codes(queries, columns.keys)

    frame, tie = table, pl.lit(0)
    storable = dense_rank(value, score_dtype)
    if storable is not None:
        frame = frame.with_columns(storable.alias(SCORE))
        value, score_dtype = pl.col(SCORE), pl.UInt32()
    if ties == "order":
        frame, tie = frame.with_row_index(TIE), pl.col(TIE)
    if ties == "doc":
        if not options.unique:
            frame = ck.guarded(frame, ck.refuse_duplicates(table, columns, frame.collect_schema()))
        tie = _text(schema, columns.doc)
    rows = Rows(frame, code.expr, label, value, score_dtype, tie, span, at_hand)
    known = queries.select(CODE, START, N, *map(relevant_name, levels))
    if row_weight is None:
        ranked = rank_rows(rows, known, formulas.base, ties)
    else:
        ranked = weighted_blocks(rows, row_weight, levels, known)
    return Ranking(queries, ranked, rows)


def measured(
    ranking: Ranking, columns: Columns, options: Options, formulas: Formulas
) -> pl.LazyFrame:
    """Compute the formulas; the second half of `per_query_plan`."""
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
