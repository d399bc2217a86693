"""Rows in memory, each packed into one integer: query, score and label.

Where the rows are at hand, the ranges of their values can be looked up before the plan is made. Nearly always, what a ranking
needs of a row then fits one integer. Once these are sorted, queries, tie blocks and the rows that count are read off one column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

import polars as pl

from polars_rankeval.checks import CODE
from polars_rankeval.layout import Layout, layouts
from polars_rankeval.ranking import (
    COUNT,
    HI,
    KEY,
    LABEL,
    LO,
    SCORE,
    SPAN,
    N,
    Rows,
    blocks_of,
    relevant_name,
    sizes,
)
from polars_rankeval.terms import POOLED, Level

PACKED, CHANGES = "rk:packed", "rk:changes"
#: If fewer rows than one in so many count, looking each up beats making all the tie blocks.
_FEW = 8
#: Rows that tell whether many scores are the same.
_GLANCE = 4096


def pack(rows: Rows, query: pl.Expr | None) -> Rows:
    """The same rows, packed if they fit; `query` is the key of the query, from CODE, None if that does not tell."""
    if query is None:
        return rows
    for layout in layouts(rows):
        packed = PackedRows(**vars(rows), query=query, layout=layout)
        if packed.tells_scores_apart():
            return packed
    return rows


@dataclass(frozen=True, kw_only=True)
class PackedRows(Rows):
    """The rows of a table in memory."""

    #: the key of the query, from CODE
    query: pl.Expr
    layout: Layout
    _known: dict[Level, pl.DataFrame] = field(init=False, default_factory=dict)

    def key(self) -> pl.Expr:
        """The packed integer without its label: rows tie if it is the same."""
        return self.layout.key(self.code, self._score()).alias(KEY)

    def least_key(self, code: pl.Expr) -> pl.Expr:
        code = code.cast(self.layout.dtype) - self.layout.least_code
        return (code * (1 << self.layout.below_query)).alias(KEY)

    def score_code(self) -> pl.Expr:
        return self._score() - pl.lit(self.layout.least_score, dtype=pl.UInt64)

    def _score(self) -> pl.Expr:
        return self.layout.score(self.score, self.score_dtype)

    def _score_part(self) -> pl.Expr:
        part = pl.col(KEY) // (1 << self.layout.label_bits)
        return (part & ((1 << self.layout.score_bits) - 1)).cast(pl.UInt64)

    def tells_scores_apart(self) -> bool:
        """Whether rows with the same bits of a score have the same score."""
        dropped = self.layout.dropped
        if dropped == 0:
            return True
        first = self.frame.head(_GLANCE)
        score = Rows.score_code(self)
        left_out = score & ((1 << dropped) - 1)
        # As in scores of 32 bits: nothing is left out.
        same = (left_out.min() == left_out.max()).fill_null(value=True)
        if (
            first.select(same).collect(engine="in-memory").item()
            and self.now(self.frame.select(same)).item()
        ):
            return True
        # Where many rows tie it takes too long to see whether they should.
        few = (
            first.select(self._packed())
            .sort(PACKED)
            .select(self._ties(_changes()).mean() * _FEW < 1)
        )
        if not few.collect(engine="in-memory").item():
            return False
        _, ties = self._starts_and_ties
        if ties == 0 or ties * _FEW > self._series.len():
            return ties == 0
        tied = self._sorted.filter(self._ties(_changes())).select(self._key_of_packed()).unique()
        scores = self.frame.select(self.key(), score.alias(SCORE)).join(tied, on=KEY, how="semi")
        unlike = scores.unique().select(pl.col(KEY).is_duplicated().any())
        return not self.now(unlike).item()

    def queries(self, keys: list[str], levels: list[Level], *others: pl.Expr) -> pl.LazyFrame:
        starts, _ = self._starts_and_ties
        queries = self._series.gather(starts).to_frame().select(self._code().alias(CODE))
        least = queries.select(self.least_key(pl.col(CODE)))[KEY]
        span = n = sizes(starts, self._series.len())
        if self.layout.unretrieved:
            beyond = self.now(self._sorted.filter(self._is_retrieved().not_()))[PACKED]
            n = span - sizes(beyond.search_sorted(least), beyond.len())
        relevant = {level: self._counted(level)[KEY] for level in levels}
        return queries.lazy().select(
            CODE,
            self.query,
            n.alias(N),
            span.alias(SPAN),
            *(
                sizes(rows.search_sorted(least), rows.len()).alias(relevant_name(level))
                for level, rows in relevant.items()
            ),
        )

    def labels(self, level: Level) -> pl.LazyFrame:
        rows = self._counted(level).lazy().select(self._code(KEY).alias(CODE), LABEL)
        return rows.group_by(CODE, LABEL).agg(pl.len().cast(pl.Int64).alias(COUNT))

    def placed(self, level: Level) -> pl.LazyFrame:
        rows = self._counted(level)
        if self.layout.unretrieved:
            rows = rows.filter(self._is_retrieved(KEY))
        if rows.height * _FEW > self._series.len():
            return rows.lazy().join_asof(self._tie_blocks(), on=PACKED).drop(PACKED)
        packed = self._series
        last = rows.select(pl.col(KEY) + ((1 << self.layout.label_bits) - 1))[KEY]
        return rows.lazy().select(
            KEY,
            LABEL,
            (packed.search_sorted(rows[KEY], "left") + 1).alias(LO),
            packed.search_sorted(last, "right").alias(HI),
        )

    def _tie_blocks(self) -> pl.LazyFrame:
        new = _changes() >= (1 << self.layout.label_bits)
        return blocks_of(
            self._sorted.with_row_index(LO, offset=1).filter(new.fill_null(value=True))
        )

    def _counted(self, level: Level) -> pl.DataFrame:
        """The rows that count at a level, retrieved or not, in order: PACKED, KEY and LABEL."""
        if level not in self._known:
            part = self._label_part()
            if level == POOLED:
                first = int(self.layout.unlabelled)
            else:
                first = self.layout.first_part(1 if level is None else ceil(level))
            self._known[level] = self.now(
                self._sorted.filter(part >= first).select(
                    PACKED, self._key_of_packed(), self.layout.label_of(part).alias(LABEL)
                )
            )
        return self._known[level]

    @cached_property
    def _series(self) -> pl.Series:
        return self.sorted_now(self.frame.select(self._packed()))

    @property
    def _sorted(self) -> pl.LazyFrame:
        return self._series.to_frame().lazy()

    @cached_property
    def _starts_and_ties(self) -> tuple[pl.Series, int]:
        """Where queries start among the sorted integers, and how many rows tie with the one before."""
        rows = self.now(self._sorted.with_columns(_changes().alias(CHANGES)))
        new = pl.col(CHANGES) >= (1 << self.layout.below_query)
        starts = rows.select(pl.arg_where(new.fill_null(value=True))).to_series()
        return starts, rows.select(self._ties(pl.col(CHANGES)).sum()).item()

    def _ties(self, changes: pl.Expr) -> pl.Expr:
        """Which retrieved rows tie with the one before."""
        ties = (changes < (1 << self.layout.label_bits)).fill_null(value=False)
        return ties & self._is_retrieved() if self.layout.unretrieved else ties

    def _packed(self) -> pl.Expr:
        return (self.key() + self.layout.label(self.label)).alias(PACKED)

    def _label_part(self) -> pl.Expr:
        return pl.col(PACKED) & ((1 << self.layout.label_bits) - 1)

    def _key_of_packed(self) -> pl.Expr:
        return (pl.col(PACKED) - self._label_part()).alias(KEY)

    def _is_retrieved(self, packed: str = PACKED) -> pl.Expr:
        return pl.col(packed) & (1 << (self.layout.below_query - 1)) == 0

    def _code(self, packed: str = PACKED) -> pl.Expr:
        code = pl.col(packed) // (1 << self.layout.below_query) + self.layout.least_code
        return code.cast(pl.Int64)


def _changes() -> pl.Expr:
    """The bits that differ from those of the row before, null for the first row."""
    return pl.col(PACKED) ^ pl.col(PACKED).shift(1)
