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

# Names that no table has.
KEY, LABEL, SCORE, TIE = "rk:key", "rk:label", "rk:score", "rk:tie"
LO, HI, N, START = "rk:lo", "rk:hi", "rk:n", "rk:start"

_INT64_MAX = 2**63 - 1


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
        if dtype == pl.Boolean or (
            dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)
        ):
            return QueryCode(value.cast(pl.Int64), hashed=False)
    values = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    return QueryCode(values.hash().reinterpret(dtype=pl.Int64), hashed=True)


def normalise(score: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The score with one zero: -0.0 becomes 0.0."""
    return score + 0.0 if dtype.is_float() else score


def descending_code(score: pl.Expr, dtype: pl.DataType) -> tuple[pl.Expr, int]:
    """An integer from 0 to 2^bits - 1 that falls as the score rises, equal only for equal scores; and its bits."""
    if dtype == pl.Float64:
        bits = normalise(score, dtype).reinterpret(dtype=pl.Int64)
        # Negative floats already rise as integers when they fall; the others are turned around.
        code = pl.when(bits < 0).then(bits).otherwise(bits ^ _INT64_MAX)
        return code.reinterpret(dtype=pl.UInt64), 64
    if dtype.is_float():
        bits = normalise(score, dtype).cast(pl.Float32).reinterpret(dtype=pl.Int32)
        code = pl.when(bits < 0).then(bits).otherwise(bits ^ (2**31 - 1))
        return code.reinterpret(dtype=pl.UInt32), 32
    if dtype == pl.Int64:
        return (score ^ _INT64_MAX).reinterpret(dtype=pl.UInt64), 64
    if dtype == pl.UInt64:
        return score ^ pl.lit(2**64 - 1, dtype=pl.UInt64), 64
    if dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128):
        return 2**32 - 1 - (score.cast(pl.Int64) + (0 if dtype.is_unsigned_integer() else 2**31)), 32
    msg = f"no 64-bit code for {dtype}"
    raise AssertionError(msg)


def storable(score: pl.Expr, dtype: pl.DataType) -> tuple[pl.Expr, pl.DataType]:
    """The score, or its dense rank in the column where the number is too wide for half a key; and the dtype."""
    if dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128):
        # rank() is ascending here: larger is still better.
        return score.rank("dense").cast(pl.UInt32), pl.UInt32()
    return score, dtype


def sort_key(
    code: pl.Expr, score: pl.Expr, dtype: pl.DataType, span: tuple[int, int] | None
) -> pl.Expr:
    """The key of a row. `span`, the least and the largest query code if known, may make it half as wide."""
    low, bits = descending_code(score, dtype)
    if span is not None and bits == 32 and span[1] - span[0] < 2**31:
        return (code - span[0]) * 2**32 + low.cast(pl.Int64)
    return code.cast(pl.Int128) * 2**bits + low.cast(pl.Int128)


def rank_rows(
    table: pl.LazyFrame,
    queries: pl.LazyFrame,
    chosen: pl.Expr,
    dtype: pl.DataType,
    ties: Ties,
    span: tuple[int, int] | None,
) -> pl.LazyFrame:
    """The chosen, retrieved rows in the order of the ranking, with the positions of their tie blocks.

    `table` has CODE, SCORE and LABEL (and TIE under `doc` and `order`), `queries` one row per CODE, sorted by it, with START, the
    retrieved rows of the queries before, and N, its own. The result has KEY, CODE, LABEL, LO and HI; under the policies that
    give each row a position of its own LO equals HI.
    """
    key = sort_key(pl.col(CODE), pl.col(SCORE), dtype, span).alias(KEY)
    retrieved = table.filter(pl.col(SCORE).is_not_null())
    same = pl.col(KEY) == pl.col(KEY).shift(1)
    blocks = (
        retrieved.select(key)
        .sort(KEY)
        .with_row_index(LO, offset=1)
        .filter(same.not_().fill_null(True))
        .with_columns(pl.col(LO).cast(pl.Int64))
        .with_columns((pl.col(LO).shift(-1) - 1).alias(HI))
    )
    if ties in ("doc", "order"):
        rows = _ordered(retrieved.with_columns(key), chosen, descending=ties == "doc")
    else:
        rows = retrieved.filter(chosen).select(key, CODE, LABEL).sort(KEY)
    rows = (
        rows.join_asof(blocks, on=KEY)
        .join_asof(queries, on=CODE)
        # The last block of all has no next one: it ends where its query does.
        .with_columns(pl.col(LO) - pl.col(START), pl.col(HI).fill_null(pl.col(START) + pl.col(N)) - pl.col(START))
    )
    if ties in ("block", "expected"):
        return rows
    if ties in ("best", "worst"):
        rows = rows.sort(KEY, LABEL, descending=[False, ties == "best"])
    position = pl.int_range(pl.len(), dtype=pl.Int64)
    if ties == "worst":
        # What counts stands at the end of its block.
        last = pl.when((pl.col(KEY) != pl.col(KEY).shift(-1)).fill_null(True)).then(position)
        place = pl.col(HI) - (last.backward_fill() - position)
    elif ties == "best":
        first = pl.when((pl.col(KEY) != pl.col(KEY).shift(1)).fill_null(True)).then(position)
        place = pl.col(LO) + (position - first.forward_fill())
    else:
        place = pl.col(LO) + pl.col(TIE)
    return rows.with_columns(place.alias(LO)).with_columns(pl.col(LO).alias(HI))


def _ordered(rows: pl.LazyFrame, chosen: pl.Expr, *, descending: bool) -> pl.LazyFrame:
    """The chosen rows in the order of (KEY, TIE), TIE replaced by the number of rows before in the same block."""
    index = pl.int_range(pl.len(), dtype=pl.Int64)
    first = pl.when((pl.col(KEY) != pl.col(KEY).shift(1)).fill_null(True)).then(index)
    return (
        rows.sort(KEY, TIE, descending=[False, descending])
        .with_columns((index - first.forward_fill()).alias(TIE))
        .filter(chosen)
        .select(KEY, CODE, LABEL, TIE)
    )
