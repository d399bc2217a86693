"""Order the rows of a table once: query codes, sort keys, positions and tie blocks of the rows that matter.

The order is one integer per row, the *key*: the query's code in the high part, the score in the low part, turned around so that
larger scores come first. Sorting a lone integer column is the cheapest sort there is; and only rows with a label
that counts are needed afterwards, which find their tie block by a merge (`join_asof`) with the sorted keys.
Rows in memory do better: see `packed`.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval._typing import AtHand, Ties
from polars_rankeval.checks import CODE
from polars_rankeval.terms import Level, counts

# Names that no table has.
KEY, LABEL, SCORE, TIE = "rk:key", "rk:label", "rk:score", "rk:tie"
LO, HI, N, COUNT = "rk:lo", "rk:hi", "rk:n", "rk:count"
SPAN, START = "rk:span", "rk:start"

_INT64_MAX = 2**63 - 1
_WIDE = (pl.Float64, pl.Int64, pl.UInt64)


@dataclass(frozen=True)
class QueryCode:
    """One Int64 per query: the value itself where it is an integer, else a hash."""

    expr: pl.Expr
    #: two queries may share a code (then the table is refused, never evaluated wrongly)
    hashed: bool
    #: the query again, from CODE, if the code alone tells
    value: pl.Expr | None = None


def relevant_name(level: Level) -> str:
    """Column of the number of rows of a query that count at a level."""
    return f"rk:relevant:{level}"


def query_code(schema: pl.Schema, columns: list[str]) -> QueryCode:
    """Code of the query (and group) that a row belongs to."""
    if len(columns) == 1:
        dtype, value, code = schema[columns[0]], pl.col(columns[0]), pl.col(CODE)
        if dtype in (pl.Categorical, pl.Enum):
            return QueryCode(value.to_physical().cast(pl.Int64), hashed=False)
        if dtype == pl.UInt64:
            unsigned = code.reinterpret(dtype=pl.UInt64)
            return QueryCode(value.reinterpret(dtype=pl.Int64), hashed=False, value=unsigned)
        if dtype.is_temporal():
            ticks = value.to_physical().cast(pl.Int64)
            return QueryCode(ticks, hashed=False, value=code.cast(dtype))
        if dtype == pl.Boolean or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)):
            return QueryCode(value.cast(pl.Int64), hashed=False, value=code.cast(dtype))
    values = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    return QueryCode(values.hash().reinterpret(dtype=pl.Int64), hashed=True)


def normalise(score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The score with one zero: -0.0 becomes 0.0."""
    if not dtype.is_float():
        return score
    # Not score + 0.0, which the optimiser takes for the score itself.
    zero = pl.lit(0.0, dtype=dtype)
    return pl.when(score == 0).then(zero).otherwise(score).alias(score.meta.output_name())


def float_bits(score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The bits of a float as an integer that has its sign."""
    if dtype == pl.Float64:
        return score.reinterpret(dtype=pl.Int64)
    return score.cast(pl.Float32).reinterpret(dtype=pl.Int32)


def descending_code(score: pl.Expr, dtype: pl.DataType, *, positive: bool = False) -> pl.Expr:
    """An unsigned integer, of 64 bits for `_WIDE` and else of 32, that falls as the score rises and is equal only for equal scores.

    `positive` says that no score has a sign.
    """
    if dtype.is_float():
        bits, wide = float_bits(score, dtype), dtype == pl.Float64
        code = bits ^ (_INT64_MAX if wide else 2**31 - 1)
        if not positive:
            # Negative floats already rise as integers when they fall; the others are turned around. One less for the former makes the code
            # of -0.0, the first of them, that of 0.0, the last of the others.
            code = pl.when(bits < 0).then(bits - 1).otherwise(code)
        return code.reinterpret(dtype=pl.UInt64 if wide else pl.UInt32)
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


def code_bits(dtype: pl.DataType) -> int:
    """The width of `descending_code`."""
    return 64 if dtype in _WIDE else 32


def sort_key(code: pl.Expr, score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """An integer that rises with the code, and falls as the score rises."""
    low = descending_code(score, dtype).cast(pl.Int128)
    return (code.cast(pl.Int128) * (1 << code_bits(dtype)) + low).alias(KEY)


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
    retrieved: pl.Expr
    #: breaks ties under `doc` and `order`
    tie: pl.Expr
    #: of the row, where a row is not one row
    weight: pl.Expr | None = None
    #: the rows are in memory, and may be worked on while the plan is made
    at_hand: AtHand = None

    def key(self) -> pl.Expr:
        """The sort key of a row, null if it is not retrieved."""
        return sort_key(self.code, self.score, self.score_dtype)

    def least_key(self, code: pl.Expr) -> pl.Expr:
        """The least key that the rows of a query can have."""
        return (code.cast(pl.Int128) * (1 << code_bits(self.score_dtype))).alias(KEY)

    def all(self) -> pl.LazyFrame:
        """Every row, retrieved or not."""
        return self.frame

    def near(self, blocks: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of some tie blocks, which have KEY, and a few more."""
        # Most rows have a score that is not that of a block, in whatever query, and need no key.
        return self.frame.join(
            blocks.select(self._score_part().alias(SCORE)),
            left_on=self.score_code(),
            right_on=SCORE,
            how="semi",
        )

    def score_code(self) -> pl.Expr:
        """The `descending_code` of the score."""
        return descending_code(self.score, self.score_dtype).cast(pl.UInt64)

    def _score_part(self) -> pl.Expr:
        """The `score_code` that a KEY holds."""
        part: pl.Expr = pl.col(KEY) & ((1 << code_bits(self.score_dtype)) - 1)
        return part.cast(pl.UInt64)

    def queries(self, keys: list[str], levels: list[Level], *others: pl.Expr) -> pl.LazyFrame:
        """One row per query: its keys, CODE, N, its retrieved rows, SPAN, those that have a place among the sorted keys, and how many count at each level."""

        def size(chosen: pl.Expr) -> pl.Expr:
            if self.weight is None:
                return chosen.sum().cast(pl.Int64)
            return self.weight.filter(chosen).sum()

        return (
            self.frame.group_by(keys)
            .agg(
                size(self.retrieved).alias(N),
                *(size(counts(self.label, x)).alias(relevant_name(x)) for x in levels),
                *others,
            )
            .with_columns(self.code.alias(CODE), pl.col(N).alias(SPAN))
        )

    def labels(self, level: Level) -> pl.LazyFrame:
        """How often each query has each label that counts at a level: CODE, LABEL, COUNT."""
        return (
            self.all()
            .filter(counts(self.label, level))
            .select(self.code.alias(CODE), self.label.cast(pl.Float64).alias(LABEL))
            .group_by(CODE, LABEL)
            .agg(pl.len().cast(pl.Int64).alias(COUNT))
        )

    def placed(self, level: Level) -> pl.LazyFrame:
        """The retrieved rows that count at a level, in order: KEY, LABEL, and where their tie blocks start and end among all retrieved rows (null at the very end)."""
        return (
            self.frame.filter(counts(self.label, level) & self.retrieved)
            .select(self.key(), self.label.cast(pl.Float64).alias(LABEL))
            .sort(KEY)
            .join_asof(self._tie_blocks(), on=KEY)
        )

    def now(self, plan: pl.LazyFrame) -> pl.DataFrame:
        """The rows of a plan over rows in memory."""
        # The streaming engine takes longer to start, and then has all threads.
        return plan.collect(engine="auto" if self.at_hand == "whole" else "in-memory")

    def sorted_now(self, keys: pl.LazyFrame) -> pl.Series:
        """The lone column of rows in memory, in order: their engine sorts it in four fifths of the time of the streaming engine."""
        # Several threads sort integers of 64 bits sooner than one, and use twice its time: not where another part can have them.
        column = keys.collect().to_series()
        return column.sort(nulls_last=True, multithreaded=self.at_hand == "whole")

    def _tie_blocks(self) -> pl.LazyFrame:
        """The distinct keys in order, with LO and HI."""
        key, keys = pl.col(KEY), self.frame.select(self.key())
        if self.at_hand:
            keys = self.sorted_now(keys).to_frame().lazy()
        else:
            keys = keys.sort(KEY, nulls_last=True)
        return blocks_of(
            keys.with_row_index(LO, offset=1).filter(
                key.is_not_null() & key.ne_missing(key.shift(1))
            )
        )


def blocks_of(firsts: pl.LazyFrame) -> pl.LazyFrame:
    """Blocks with their ends, from their first rows in order, which have LO, from 1. As narrow as they come: there may be as many as rows."""
    return firsts.with_columns((pl.col(LO).shift(-1) - 1).alias(HI))


def sizes(starts: pl.Series, end: int) -> pl.Series:
    """From each start to the next one, or to the end."""
    starts = starts.cast(pl.Int64)
    return starts.shift(-1, fill_value=end) - starts


def rank_rows(rows: Rows, queries: pl.LazyFrame, level: Level, ties: Ties) -> pl.LazyFrame:
    """The retrieved rows that count at a level, in the order of the ranking, with the positions of their tie blocks.

    The columns of `queries` are added to the rows. The result has KEY, LABEL, LO and HI besides; under the policies that give each row a position of its
    own LO equals HI.
    """
    ranked = (
        rows.placed(level)
        .join_asof(queries.with_columns(rows.least_key(pl.col(CODE))), on=KEY)
        # The last block of all has no next one: it ends where its query does.
        .with_columns(
            pl.col(LO).cast(pl.Int64) - pl.col(START),
            pl.coalesce(pl.col(HI).cast(pl.Int64), pl.col(START) + pl.col(N)) - pl.col(START),
        )
    )
    if ties in ("block", "expected"):
        return ranked
    if ties in ("order", "doc"):
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
    tied = (
        rows.near(blocks)
        .select(rows.key(), rows.label.cast(pl.Float64).alias(LABEL), rows.tie.alias(TIE))
        .join(blocks, on=KEY)
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
