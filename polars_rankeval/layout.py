"""How a row fits one integer: the query in the high part, then the score, then the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_rankeval.ranking import Rows, descending_code, float_bits

#: Whole numbers up to here are compared with `rel` as Float64 does.
_EXACT = 2**53
#: The bits of infinity, and the largest integer, of as many bits as a float.
_INFINITY = {64: (0x7FF << 52, 2**63 - 1), 32: (0xFF << 23, 2**31 - 1)}
#: A float has 52 bits behind its first. If so many are left besides those that number the rows, then with a thousand rows a query no two of its
#: scores that are not the same are expected to share them.
_SPARE = 10


@dataclass(frozen=True)
class Layout:
    """Where the parts stand, and what is taken off each so that it is small."""

    dtype: pl.DataType
    least_code: int
    least_score: int
    least_label: int
    score_bits: int
    label_bits: int
    #: the last bits of a score, which are left out
    dropped: int
    #: some rows are not retrieved: they come last in their query, by the first bit of the score
    unretrieved: bool
    #: some rows have no label, and 0 instead of it; the others are one more
    unlabelled: bool
    #: no score has a sign
    positive: bool

    @property
    def below_query(self) -> int:
        """Bits of score and label."""
        return self.score_bits + self.label_bits

    def score(self, score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        """The score, as an integer which falls as it rises."""
        code = descending_code(score, dtype, positive=self.positive).cast(pl.UInt64)
        return code // (1 << self.dropped) if self.dropped else code

    def key(self, code: pl.Expr, score: pl.Expr) -> pl.Expr:
        """The integer without a label, from the code of the query and `score`."""
        narrow = self.dtype == pl.Int64
        low = score.reinterpret(dtype=pl.Int64) if narrow else score.cast(self.dtype)
        if self.unretrieved:
            low = low.fill_null(self._number(self.least_score + (1 << (self.score_bits - 1))))
        high = code.cast(self.dtype) * (1 << self.below_query)
        # All that is taken off, at once.
        least = (self.least_code << self.below_query) + (self.least_score << self.label_bits)
        return high + low * (1 << self.label_bits) - self._number(least)

    def _number(self, value: int) -> pl.Expr:
        """A number to calculate with: integers of 64 bits may wrap on the way to a sum that does not."""
        wraps = self.dtype == pl.Int64
        return pl.lit((value + 2**63) % 2**64 - 2**63 if wraps else value, dtype=self.dtype)

    def label(self, label: pl.Expr) -> pl.Expr:
        """What a label adds to the integer."""
        least = self.least_label - self.unlabelled
        added = label.cast(self.dtype) - least if least else label.cast(self.dtype)
        return added.fill_null(0) if self.unlabelled else added

    def label_of(self, part: pl.Expr) -> pl.Expr:
        """The label again, from its part."""
        label = part.cast(pl.Int64) + (self.least_label - self.unlabelled)
        return label.cast(pl.Float64)

    def first_part(self, label: int) -> int:
        """The least part that labels from this one on have; that of no label at all if there is none."""
        part = label - self.least_label + self.unlabelled
        return min(max(part, int(self.unlabelled)), 1 << self.label_bits)


def layouts(rows: Rows) -> list[Layout]:
    """Those that rows in memory fit, the narrowest first, which may leave out bits of the scores."""
    dtype = rows.frame.select(rows.label).collect_schema().dtypes()[0]
    if not (dtype.is_integer() or dtype.is_float()):
        return []
    seen = _seen(rows, dtype)
    if seen["least_code"] is None or seen["unlike"]:
        return []
    if max(-seen["least_label"], seen["largest_label"]) > _EXACT:
        return []
    codes = _score_codes(rows)
    if codes is None:
        return []
    least_score, largest_score, positive = codes
    code_bits = (seen["largest_code"] - seen["least_code"]).bit_length()
    label_bits = (seen["largest_label"] - seen["least_label"] + seen["unlabelled"]).bit_length()

    def score_bits(dropped: int) -> int:
        span = (largest_score >> dropped) - (least_score >> dropped)
        return span.bit_length() + int(seen["unretrieved"])

    fitting: list[Layout] = []
    most_dropped = max(52 - _SPARE - seen["rows"].bit_length(), 0)
    for wide, bits, most in ((pl.Int64(), 62, most_dropped), (pl.Int128(), 126, 0)):
        for dropped in range(most + 1):
            if code_bits + score_bits(dropped) + label_bits <= bits:
                layout = Layout(
                    wide,
                    least_code=seen["least_code"],
                    least_score=least_score >> dropped,
                    least_label=seen["least_label"],
                    score_bits=score_bits(dropped),
                    label_bits=label_bits,
                    dropped=dropped,
                    unretrieved=seen["unretrieved"],
                    unlabelled=seen["unlabelled"],
                    positive=positive,
                )
                if dropped == 0:
                    return [*fitting, layout]
                fitting.append(layout)
                break
    return fitting


def _seen(rows: Rows, label_dtype: pl.DataType) -> dict[str, Any]:
    """The ranges of codes and labels."""
    label = whole = rows.label
    unlike = pl.lit(False)
    if not label_dtype.is_integer() or label_dtype in (pl.UInt64, pl.Int128, pl.UInt128):
        whole = label.cast(pl.Int64, strict=False)
        unlike = whole.ne_missing(label).any()
    seen: dict[str, Any] = rows.now(
        rows.frame.select(
            pl.len().alias("rows"),
            rows.code.min().alias("least_code"),
            rows.code.max().alias("largest_code"),
            whole.min().cast(pl.Int64).fill_null(0).alias("least_label"),
            whole.max().cast(pl.Int64).fill_null(0).alias("largest_label"),
            rows.retrieved.all().not_().alias("unretrieved"),
            label.has_nulls().alias("unlabelled"),
            unlike.alias("unlike"),
        )
    ).row(0, named=True)
    return seen


def _score_codes(rows: Rows) -> tuple[int, int, bool] | None:
    """The least and the largest `descending_code`, and whether no score has a sign; None if one is not a number."""
    score, dtype = rows.score, rows.score_dtype
    nan = pl.lit(False)
    if dtype.is_float():
        bits = float_bits(score, dtype)
        least, largest = rows.now(
            rows.frame.select(bits.min().alias("least"), bits.max().alias("largest"))
        ).row(0)
        if least is not None and least >= 0:
            # In the order of their bits: infinity, then what is not a number, last.
            infinity, top = _INFINITY[64 if dtype == pl.Float64 else 32]
            return None if largest > infinity else (top - largest, top - least, True)
        nan = score.is_nan().any()
    codes = rows.frame.select(
        descending_code(score.max(), dtype).fill_null(0).alias("least"),
        descending_code(score.min(), dtype).fill_null(0).alias("largest"),
        nan.alias("nan"),
    )
    least, largest, unordered = rows.now(codes).row(0)
    return None if unordered else (least, largest, False)
