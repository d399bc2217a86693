"""Rows in memory, each packed into one integer: query, score and label.

Where the rows are at hand, the ranges of their values can be looked up before the plan is made. Nearly always, what a ranking
needs of a row then fits one integer. Once these are sorted, queries, tie blocks and the rows that count are read off one column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

import polars as pl

from polars_rankeval.checks import CODE
from polars_rankeval.ranking import (
    COUNT,
    HI,
    KEY,
    LABEL,
    LO,
    SPAN,
    N,
    Rows,
    blocks_of,
    code_bits,
    descending_code,
    relevant_name,
    sizes,
    sorted_now,
)
from polars_rankeval.terms import POOLED, Level

PACKED = "rk:packed"
#: If fewer rows than one in so many count, looking each up beats making all the tie blocks.
_FEW = 8
#: Whole numbers up to here are compared with `rel` as Float64 does.
_EXACT = 2**53


@dataclass(frozen=True)
class Layout:
    """Where the parts stand in the integer: the query in the high part, then the score, then the label."""

    least_code: int
    #: some rows are not retrieved: they come last in their query, by one more bit of the score
    unretrieved: bool
    score_bits: int
    #: part 0 is a row without label, part 1 has the least label
    least_label: int
    label_bits: int
    dtype: pl.DataType


def pack(rows: Rows, query: pl.Expr | None) -> Rows:
    """The same rows, packed if they fit; `query` is the key of the query, from CODE, None if that does not tell."""
    dtype = rows.frame.select(rows.label).collect_schema().dtypes()[0]
    if query is None or not (dtype.is_integer() or dtype.is_float()):
        return rows
    whole = rows.label.cast(pl.Int64, strict=False)
    unlike = whole.ne_missing(rows.label).any() if dtype != pl.Int64 else pl.lit(False)
    seen: dict[str, Any] = (
        rows.frame.select(
            rows.code.min().alias("least_code"),
            rows.code.max().alias("largest_code"),
            whole.min().fill_null(0).alias("least_label"),
            whole.max().fill_null(0).alias("largest_label"),
            rows.retrieved.all().not_().alias("unretrieved"),
            unlike.alias("unlike"),
        )
        .collect()
        .row(0, named=True)
    )
    if seen["least_code"] is None or seen["unlike"]:
        return rows
    score_bits = code_bits(rows.score_dtype) + seen["unretrieved"]
    label_bits = (seen["largest_label"] - seen["least_label"] + 1).bit_length()
    bits = (seen["largest_code"] - seen["least_code"]).bit_length() + score_bits + label_bits
    if bits > 127 or max(-seen["least_label"], seen["largest_label"]) > _EXACT:
        return rows
    layout = Layout(
        seen["least_code"],
        seen["unretrieved"],
        score_bits,
        seen["least_label"],
        label_bits,
        pl.Int64() if bits <= 63 else pl.Int128(),
    )
    return PackedRows(**vars(rows), query=query, layout=layout)


@dataclass(frozen=True, kw_only=True)
class PackedRows(Rows):
    """The rows of a table in memory."""

    #: the key of the query, from CODE
    query: pl.Expr
    layout: Layout
    _known: dict[Level, pl.DataFrame] = field(init=False, default_factory=dict)

    def key(self) -> pl.Expr:
        """The packed integer without its label: rows tie if it is the same."""
        layout = self.layout
        low = descending_code(self.score, self.score_dtype).cast(layout.dtype)
        if layout.unretrieved:
            low = low.fill_null(1 << (layout.score_bits - 1))
        code = self.code.cast(layout.dtype) - layout.least_code
        return ((code * (1 << layout.score_bits) + low) * (1 << layout.label_bits)).alias(KEY)

    def least_key(self, code: pl.Expr) -> pl.Expr:
        code = code.cast(self.layout.dtype) - self.layout.least_code
        return (code * (1 << self._below_query)).alias(KEY)

    def _score_part(self) -> pl.Expr:
        part = pl.col(KEY) // (1 << self.layout.label_bits)
        return (part & ((1 << code_bits(self.score_dtype)) - 1)).cast(pl.UInt64)

    def queries(self, keys: list[str], levels: list[Level], *others: pl.Expr) -> pl.LazyFrame:
        starts = (
            self._sorted.with_row_index(LO)
            .filter(self._changed(self._below_query))
            .select(self._code().alias(CODE), LO)
            .collect()
        )
        least = starts.select(self.least_key(pl.col(CODE)))[KEY]
        span = n = sizes(starts[LO], self._series.len())
        if self.layout.unretrieved:
            beyond = self._sorted.filter(self._is_retrieved().not_()).collect()[PACKED]
            n = span - sizes(beyond.search_sorted(least), beyond.len())
        relevant = {level: self._counted(level)[KEY] for level in levels}
        return starts.lazy().select(
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
        blocks = self._sorted.with_row_index(LO, offset=1).filter(
            self._changed(self.layout.label_bits)
        )
        return blocks_of(blocks)

    def _counted(self, level: Level) -> pl.DataFrame:
        """The rows that count at a level, retrieved or not, in order: PACKED, KEY and LABEL."""
        if level not in self._known:
            layout = self.layout
            part = pl.col(PACKED) & ((1 << layout.label_bits) - 1)
            # The part of the label that is the first to count.
            if level is None:
                first = 2 - layout.least_label
            else:
                first = 1 if level == POOLED else ceil(level) - layout.least_label + 1
            self._known[level] = (
                self._sorted.filter(part >= min(max(first, 1), 1 << layout.label_bits))
                .select(
                    PACKED,
                    (pl.col(PACKED) - part).alias(KEY),
                    (part.cast(pl.Int64) + (layout.least_label - 1)).cast(pl.Float64).alias(LABEL),
                )
                .collect()
            )
        return self._known[level]

    @cached_property
    def _series(self) -> pl.Series:
        label = (self.label.cast(pl.Int64) - (self.layout.least_label - 1)).fill_null(0)
        packed = self.key() + label.cast(self.layout.dtype)
        return sorted_now(self.frame.select(packed.alias(PACKED)))

    @property
    def _sorted(self) -> pl.LazyFrame:
        return self._series.to_frame().lazy()

    @property
    def _below_query(self) -> int:
        return self.layout.score_bits + self.layout.label_bits

    def _changed(self, bits: int) -> pl.Expr:
        """Whether the parts above so many bits differ from those of the row before."""
        packed = pl.col(PACKED)
        return ((packed ^ packed.shift(1)) >= (1 << bits)).fill_null(True)

    def _is_retrieved(self, packed: str = PACKED) -> pl.Expr:
        return pl.col(packed) & (1 << (self._below_query - 1)) == 0

    def _code(self, packed: str = PACKED) -> pl.Expr:
        code = pl.col(packed) // (1 << self._below_query) + self.layout.least_code
        return code.cast(pl.Int64)
