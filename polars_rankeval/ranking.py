"""Order the rows of a table once: query codes, sort keys, positions and tie blocks of the rows that matter.

The order is one integer per row, the *key*: the query's code in the high part, the score in the low part, turned around so that
larger scores come first. Sorting a lone integer column is the cheapest sort there is; and only rows with a label
that counts are needed afterwards, which find their tie block by a merge (`join_asof`) with the sorted keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval._typing import Ties
from polars_rankeval.checks import CODE
from polars_rankeval.terms import Level, counts

# Names that no table has.
KEY, LABEL, SCORE, TIE = "rk:key", "rk:label", "rk:score", "rk:tie"
LO, HI, N, START = "rk:lo", "rk:hi", "rk:n", "rk:start"

_INT64_MAX = 2**63 - 1
_WIDE = (pl.Float64, pl.Int64, pl.UInt64)


@dataclass(frozen=True)
class QueryCode:
    """One Int64 per query: the value itself where it is an integer, else a hash."""

    expr: pl.Expr
    #: two queries may share a code (then the table is refused, never evaluated wrongly)
    hashed: bool


def query_code(schema: pl.Schema, columns: list[str]) -> QueryCode:
    """Code of the query (and group) that a row belongs to."""
    if len(columns) == 1:
        dtype, value = schema[columns[0]], pl.col(columns[0])
        if dtype.is_temporal() or dtype in (pl.Categorical, pl.Enum):
            return QueryCode(value.to_physical().cast(pl.Int64), hashed=False)
        if dtype == pl.UInt64:
            return QueryCode(value.reinterpret(dtype=pl.Int64), hashed=False)
        if dtype == pl.Boolean or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)):
            return QueryCode(value.cast(pl.Int64), hashed=False)
    values = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    return QueryCode(values.hash().reinterpret(dtype=pl.Int64), hashed=True)


def normalise(score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The score with one zero: -0.0 becomes 0.0."""
    if not dtype.is_float():
        return score
    # Not score + 0.0, which the optimiser takes for the score itself.
    zero = pl.lit(0.0, dtype=dtype)
    return pl.when(score == 0).then(zero).otherwise(score).alias(score.meta.output_name())


def descending_code(score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """An unsigned integer, of 64 bits for `_WIDE` and else of 32, that falls as the score rises and is equal only for equal scores."""
    if dtype == pl.Float64:
        bits = score.reinterpret(dtype=pl.Int64)
        # Negative floats already rise as integers when they fall; the others are turned around. One less for the former makes the code
        # of -0.0, the first of them, that of 0.0, the last of the others.
        code = pl.when(bits < 0).then(bits - 1).otherwise(bits ^ _INT64_MAX)
        return code.reinterpret(dtype=pl.UInt64)
    if dtype.is_float():
        bits = score.cast(pl.Float32).reinterpret(dtype=pl.Int32)
        code = pl.when(bits < 0).then(bits - 1).otherwise(bits ^ (2**31 - 1))
        return code.reinterpret(dtype=pl.UInt32)
    if dtype == pl.Int64:
        return (score ^ _INT64_MAX).reinterpret(dtype=pl.UInt64)
    if dtype == pl.UInt64:
        return score ^ pl.lit(2**64 - 1, dtype=pl.UInt64)
    if dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128):
        # Widened first: the difference of small integers would wrap.
        return 2**32 - 1 - (score.cast(pl.Int64) + (0 if dtype.is_unsigned_integer() else 2**31))
    msg = f"no 64-bit code for {dtype}"
    raise AssertionError(msg)


def dense_rank(score: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    """A stand-in for scores too wide for half a key: their rank in the column, larger for larger scores."""
    if dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128):
        return score.rank("dense").cast(pl.UInt32)
    return None


@dataclass(frozen=True)
class Rows:
    """The rows of a table, as expressions over its columns.

    Each use selects and filters on its own, so that no copy of the table is made to be shared.
    """

    frame: pl.LazyFrame
    code: pl.Expr
    #: a number
    label: pl.Expr
    score: pl.Expr
    score_dtype: pl.DataType
    #: breaks ties under `doc` and `order`
    tie: pl.Expr
    #: the least and the largest query code, if known
    span: tuple[int, int] | None = None
    #: the rows are in memory, and may be worked on while the plan is made
    at_hand: bool = False

    def key(self) -> pl.Expr:
        """The sort key of a row, null if it is not retrieved."""
        return self._key(self.code, descending_code(self.score, self.score_dtype))

    def least_key(self, code: pl.Expr) -> pl.Expr:
        """The least key that the rows of a query can have."""
        return self._key(code, pl.lit(0))

    def _key(self, code: pl.Expr, low: pl.Expr) -> pl.Expr:
        bits = 64 if self.score_dtype in _WIDE else 32
        key: pl.Expr = code.cast(pl.Int128) * 2**bits + low.cast(pl.Int128)
        if self.span is not None and bits == 32 and self.span[1] - self.span[0] < 2**31:
            # Half as wide, and sorted in half the time.
            key = (code - self.span[0]) * 2**32 + low.cast(pl.Int64)
        return key.alias(KEY)

    def labelled(self, level: Level) -> pl.LazyFrame:
        """The rows that count at a level."""
        return self.frame.filter(counts(self.label, level))

    def tie_blocks(self) -> pl.LazyFrame:
        """The distinct keys in order: where their blocks start among all retrieved rows, and end (null for the last)."""
        key, keys = pl.col(KEY), self.frame.select(self.key())
        if self.at_hand:
            # The in-memory engine sorts a lone column in four fifths of the time of the streaming engine.
            keys = keys.collect().to_series().sort(nulls_last=True).to_frame().lazy()
        else:
            keys = keys.sort(KEY, nulls_last=True)
        return (
            keys.with_row_index(LO, offset=1)
            .filter(key.is_not_null() & key.ne_missing(key.shift(1)))
            .with_columns(pl.col(LO).cast(pl.Int64))
            .with_columns((pl.col(LO).shift(-1) - 1).alias(HI))
        )


def rank_rows(rows: Rows, queries: pl.LazyFrame, level: Level, ties: Ties) -> pl.LazyFrame:
    """The retrieved rows that count at a level, in the order of the ranking, with the positions of their tie blocks.

    `queries` has one row per CODE, sorted by it, with START, the retrieved rows of the queries before, and N, its own; its columns
    are added to the rows. The result has KEY, LABEL, LO and HI besides; under the policies that give each row a position of its
    own LO equals HI.
    """
    key = rows.key()
    label = rows.label.cast(pl.Float64).alias(LABEL)
    ordered = ties in ("order", "doc")
    ranked = (
        rows.labelled(level)
        .filter(rows.score.is_not_null())
        .select(key, label, *([rows.score.alias(SCORE)] if ordered else []))
        .sort(KEY)
        .join_asof(rows.tie_blocks(), on=KEY)
        .join_asof(queries.with_columns(rows.least_key(pl.col(CODE))), on=KEY)
        # The last block of all has no next one: it ends where its query does.
        .with_columns(
            pl.col(LO) - pl.col(START),
            pl.coalesce(HI, pl.col(START) + pl.col(N)) - pl.col(START),
        )
    )
    if ties in ("block", "expected"):
        return ranked
    if ordered:
        return _in_order(rows, ranked.cache(), level, descending=ties == "doc")
    position = pl.int_range(pl.len(), dtype=pl.Int64)
    if ties == "best":
        # What counts stands at the head of its block, the largest label first.
        ranked = ranked.sort(KEY, LABEL, descending=[False, True])
        first = pl.when(changed(KEY, 1)).then(position)
        place = pl.col(LO) + (position - first.forward_fill())
    else:
        ranked = ranked.sort(KEY, LABEL)
        last = pl.when(changed(KEY, -1)).then(position)
        place = pl.col(HI) - (last.backward_fill() - position)
    return ranked.with_columns(place.alias(LO)).with_columns(pl.col(LO).alias(HI))


def _in_order(rows: Rows, ranked: pl.LazyFrame, level: Level, *, descending: bool) -> pl.LazyFrame:
    """The ranked rows, each at the place in its block that the tie-breaking column gives it.

    Only blocks of several rows that hold one that counts are looked at in full.
    """
    alone = pl.col(LO) == pl.col(HI)
    index = pl.int_range(pl.len(), dtype=pl.Int64)
    first = pl.when(changed(KEY, 1)).then(index)
    blocks = ranked.filter(~alone).drop(LABEL).unique(KEY).cache()
    ranked = ranked.drop(SCORE)
    tied = (
        # Most rows have a score that is not that of a block, in whatever query, and need no key.
        rows.frame.join(blocks, left_on=rows.score, right_on=SCORE, how="semi")
        .select(rows.key(), rows.label.cast(pl.Float64).alias(LABEL), rows.tie.alias(TIE))
        .join(blocks.drop(SCORE), on=KEY)
        .sort(KEY, TIE, descending=[False, descending])
        .with_columns(pl.col(LO) + (index - first.forward_fill()))
        .filter(counts(pl.col(LABEL), level))
        .with_columns(pl.col(LO).alias(HI))
    )
    return pl.concat([ranked.filter(alone), tied.select(ranked.collect_schema().names())]).sort(
        KEY, LO
    )


def changed(column: str, by: int) -> pl.Expr:
    """Whether a row differs from the one before (by=1) or after it (by=-1); true at the end."""
    return (pl.col(column) != pl.col(column).shift(by)).fill_null(True)
