"""ERR in tie blocks of graded rows, the one quantity that has no closed form over columns.

With T_i the mean over the orders of a block of the product of (1 - stop) over its first i rows, adding a row with survival
a to m rows gives T'_i = ((m + 1 - i) T_i + i a T_(i-1)) / (m + 1). Rows that satisfy nobody leave T at 1, so a block starts
with all of them, and its relevant rows are added one a step: all blocks together, as many steps as the block richest in relevant
rows has of them.
"""

from __future__ import annotations

import polars as pl

from polars_rankeval.ranking import HI, LO
from polars_rankeval.terms import Weight

BLOCK_FIRST = "rk:block_first"

_BLOCK, _INDEX, _T, _M, _A = "rk:block", "rk:index", "rk:t", "rk:m", "rk:a"


def stop_in_tied_blocks(
    rows: pl.LazyFrame, stop: pl.Expr, weight: Weight, name: str
) -> pl.LazyFrame:
    """Add the expected weight of the position where a user who enters a block stops, on its first row that counts; 0 on the others.

    A whole-frame function, since the steps depend on the data. It sees only the relevant rows, and runs when the plan does.
    """

    def add(frame: pl.DataFrame) -> pl.DataFrame:
        tied = frame.select(
            LO, HI, pl.col(name), pl.col(BLOCK_FIRST).cum_sum().alias(_BLOCK)
        ).filter(pl.col(HI) > pl.col(LO))
        alone = pl.when(pl.col(HI) == pl.col(LO)).then(pl.col(name) * weight(pl.col(LO)))
        if tied.is_empty():
            return frame.with_columns(alone.alias(name))
        frame = frame.with_columns(pl.col(BLOCK_FIRST).cum_sum().alias(_BLOCK))
        values = _tied(tied, name, weight)
        # Rows that count at another level only, such as those judged, may stand before the first one that counts here.
        hit = pl.col(name) > 0
        first = hit & (hit.cum_sum().over(_BLOCK) == 1)
        value = pl.when(first).then(pl.col("rk:value")).otherwise(0.0)
        return (
            frame.join(values, on=_BLOCK, how="left", maintain_order="left")
            .with_columns(pl.coalesce(alone, value).alias(name))
            .drop(_BLOCK, "rk:value")
        )

    # Rows that do not count here stop nobody: they are in the block as any other row.
    rows = rows.with_columns(stop.alias(name))
    return rows.map_batches(add, schema=rows.collect_schema(), streamable=False)


def _tied(tied: pl.DataFrame, stop: str, weight: Weight) -> pl.DataFrame:
    """The value of each block, from its relevant rows."""
    step = pl.int_range(pl.len()).over(_BLOCK)
    relevant = tied.filter(pl.col(stop) > 0).select(
        _BLOCK, (1 - pl.col(stop)).alias(_A), step.alias("rk:step")
    )
    blocks = tied.group_by(_BLOCK, maintain_order=True).agg(
        pl.col(LO).first(),
        (pl.col(HI) - pl.col(LO) + 1).first().alias("rk:size"),
        (pl.col(stop) > 0).sum().cast(pl.Int64).alias("rk:hits"),
    )
    slots = (
        blocks.with_columns(pl.int_ranges(0, pl.col("rk:size") + 1).alias(_INDEX))
        .explode(_INDEX)
        .with_columns(pl.lit(1.0).alias(_T))
    )
    # T_i means nothing for i > m, where it is multiplied by 0 or by a later 0, and must only stay finite.
    i, t, m, a = pl.col(_INDEX), pl.col(_T), pl.col(_M), pl.col(_A)
    for number, rows in relevant.partition_by("rk:step", as_dict=True, maintain_order=True).items():
        slots = (
            slots.join(rows.select(_BLOCK, _A), on=_BLOCK, how="left", maintain_order="left")
            .with_columns((pl.col("rk:size") - pl.col("rk:hits") + number[0]).alias(_M))
            .with_columns(
                pl.when(a.is_null() | (i > m + 1))
                .then(t)
                .otherwise(((m + 1 - i) * t + i * a * t.shift(1, fill_value=1.0)) / (m + 1))
                .alias(_T)
            )
            .drop(_A)
        )
    drop = t - t.shift(-1)
    return (
        slots.with_columns(
            pl.when(i < pl.col("rk:size")).then(drop * weight(pl.col(LO) + i)).alias("rk:value")
        )
        .group_by(_BLOCK)
        .agg(pl.col("rk:value").sum())
    )
