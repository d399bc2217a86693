"""Rows in memory that stand in the order of their ranking already, as the output of a ranker does and TREC runs do: nothing is sorted."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval.checks import CODE
from polars_rankeval.ranking import (
    HI,
    KEY,
    LABEL,
    LO,
    SPAN,
    START,
    N,
    Rows,
    relevant_name,
    sizes,
)
from polars_rankeval.terms import Level, counts

NEW_QUERY, NEW_BLOCK, FALLS = "rk:new_query", "rk:new_block", "rk:falls"
#: Rows of a first look, which nearly always tells that rows are in no order.
_GLANCE = 1000


def in_order(rows: Rows, query: pl.Expr | None) -> Rows | None:
    """The same rows, if those that are retrieved are in order; `query` is the key of the query, from CODE, None if that does not tell."""
    if query is None:
        return None
    first = rows.frame.head(_GLANCE).filter(rows.retrieved).select(_descending(rows))
    if not first.collect(engine="in-memory").item():
        return None
    whole = rows.now(rows.frame.select(rows.retrieved.all())).item()
    frame = rows.frame if whole else rows.now(rows.frame.filter(rows.retrieved)).lazy()
    if not rows.now(frame.select(_descending(rows))).item():
        return None
    rest = rows.frame.clear() if whole else rows.frame.filter(rows.retrieved.not_())
    new_query, new_block, _ = steps(rows.code, rows.score)
    flags = rows.now(frame.select(new_query, new_block))
    block = flags.select(pl.col(NEW_BLOCK).cum_sum() - 1)
    starts = flags[NEW_BLOCK].arg_true()
    places = block.select(*block_places(pl.col(NEW_BLOCK), starts, flags.height))
    heads = flags[NEW_QUERY].arg_true()
    codes = rows.now(frame.select(rows.code.gather(heads).alias(CODE)))
    return OrderedRows(
        **{**vars(rows), "frame": pl.concat([frame, places.lazy()], how="horizontal")},
        rest=rest,
        query=query,
        sizes=codes.with_columns(sizes(heads, flags.height).alias(N)),
    )


def steps(code: pl.Expr, score: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Of rows in their order: whether one starts a query, whether it starts a tie block, and whether it is no better than the one before it in its query."""
    other = code != code.shift(1)
    return (
        other.fill_null(value=True).alias(NEW_QUERY),
        (other | (score != score.shift(1))).fill_null(value=True).alias(NEW_BLOCK),
        (other | (score <= score.shift(1))).fill_null(value=True).alias(FALLS),
    )


def block_places(block: pl.Expr, starts: pl.Series, height: int) -> tuple[pl.Expr, pl.Expr]:
    """Where the tie blocks of rows start (KEY) and end (HI), from 1: `block` is the number of theirs, from 0, and `starts` those of all, from 0."""
    ends = starts.shift(-1, fill_value=height)
    return (pl.lit(starts).gather(block) + 1).alias(KEY), pl.lit(ends).gather(block).alias(HI)


def _descending(rows: Rows) -> pl.Expr:
    """Whether queries rise, and scores fall in each; a null or NaN is for the checks to refuse, and in no order."""
    rises = rows.code >= rows.code.shift(1)
    _, _, falls = steps(rows.code, rows.score)
    ranks = (rises & falls).all() & rows.code.has_nulls().not_()
    if rows.score_dtype.is_float():
        ranks &= rows.score.is_nan().any().not_()
    return ranks


@dataclass(frozen=True, kw_only=True)
class OrderedRows(Rows):
    """The rows of a table in memory: `frame` has those that are retrieved, in order, with the places where their tie block starts, KEY, and ends, HI.

    Rows without label that tie with no other may be left out of it.
    """

    #: the other rows
    rest: pl.LazyFrame
    #: the key of the query, from CODE
    query: pl.Expr
    #: CODE and N, the retrieved rows of a query
    sizes: pl.DataFrame

    def key(self) -> pl.Expr:
        return pl.col(KEY)

    def least_key(self, code: pl.Expr) -> pl.Expr:
        # A query without rows has the key of the next one, which stands behind it and so is found.
        return (pl.col(START) + 1).cast(pl.get_index_type()).alias(KEY)

    def all(self) -> pl.LazyFrame:
        return pl.concat([self.frame.drop(KEY, HI), self.rest])

    def near(self, blocks: pl.LazyFrame) -> pl.LazyFrame:
        return self.frame.filter(pl.col(KEY) < pl.col(HI))

    def queries(self, keys: list[str], levels: list[Level], *others: pl.Expr) -> pl.LazyFrame:
        code = self.code.alias(CODE)
        known = self.sizes
        unanswered = self.rest.select(code, pl.lit(0, dtype=pl.Int64).alias(N)).unique()
        known = self.now(
            pl.concat([known.lazy(), unanswered.join(known.lazy(), on=CODE, how="anti")]).sort(CODE)
        )
        columns = [
            sizes(counted.search_sorted(known[CODE]), counted.len()).alias(relevant_name(level))
            for level in levels
            for counted in [self._codes(level)]
        ]
        return known.lazy().with_columns(self.query, pl.col(N).alias(SPAN), *columns)

    def _codes(self, level: Level) -> pl.Series:
        """The queries of the rows that count at a level, in order."""
        chosen = self.all().filter(counts(self.label, level)).select(self.code)
        return self.now(chosen).to_series().sort()

    def placed(self, level: Level) -> pl.LazyFrame:
        return self.frame.filter(counts(self.label, level)).select(
            KEY, self.label.cast(pl.Float64).alias(LABEL), pl.col(KEY).alias(LO), HI
        )
