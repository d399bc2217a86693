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
    index = pl.int_range(1, pl.len() + 1, dtype=pl.get_index_type())
    new = _new_query(rows) | (rows.score != rows.score.shift(1))
    positions = frame.select(index.alias(LO), new.fill_null(True).alias(KEY)).select(
        pl.when(KEY).then(LO).forward_fill().alias(KEY),
        pl.when(pl.col(KEY).shift(-1, fill_value=True)).then(LO).backward_fill().alias(HI),
    )
    placed = rows.now(pl.concat([frame, positions], how="horizontal")).lazy()
    return OrderedRows(**{**vars(rows), "frame": placed}, rest=rest, query=query)


def _new_query(rows: Rows) -> pl.Expr:
    return rows.code != rows.code.shift(1)


def _descending(rows: Rows) -> pl.Expr:
    """Whether queries rise, and scores fall in each; a null or NaN is for the checks to refuse, and in no order."""
    rises = rows.code >= rows.code.shift(1)
    falls = _new_query(rows) | (rows.score <= rows.score.shift(1))
    ranks = (rises & falls).all() & rows.code.has_nulls().not_()
    if rows.score_dtype.is_float():
        ranks &= rows.score.is_nan().any().not_()
    return ranks


@dataclass(frozen=True, kw_only=True)
class OrderedRows(Rows):
    """The rows of a table in memory: `frame` has those that are retrieved, in order, with KEY, the place where their block starts, and HI."""

    #: the other rows
    rest: pl.LazyFrame
    #: the key of the query, from CODE
    query: pl.Expr

    def key(self) -> pl.Expr:
        return pl.col(KEY)

    def least_key(self, code: pl.Expr) -> pl.Expr:
        # A query without rows has the key of the next one, which stands behind it and so is found.
        return (pl.col(START) + 1).cast(pl.get_index_type()).alias(KEY)

    def all(self) -> pl.LazyFrame:
        return pl.concat([self.frame.drop(KEY, HI), self.rest])

    def near(self, blocks: pl.LazyFrame) -> pl.LazyFrame:
        return self.frame

    def queries(self, keys: list[str], levels: list[Level], *others: pl.Expr) -> pl.LazyFrame:
        code = self.code.alias(CODE)
        starts = self.now(
            self.frame.with_row_index(LO).filter(_new_query(self).fill_null(True)).select(code, LO)
        )
        height: int = self.now(self.frame.select(pl.len())).item()
        known = starts.select(CODE, sizes(starts[LO], height).alias(N))
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
