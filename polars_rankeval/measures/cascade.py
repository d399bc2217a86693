"""Family 2: cascades, where a user stops at the first row that satisfies.

With T_i the expected probability that the first i rows of a block satisfy nobody, over the orders of the block, the block
adds sum_i (T_i - T_(i+1)) * weight(lo + i), times the probability that the user gets that far.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from polars_rankeval.measures.weighted import gain_of, log_discount
from polars_rankeval.terms import Terms, Weight, within


def reciprocal(position: pl.Expr) -> pl.Expr:
    """1 / position."""
    return 1 / position


def first_hit(t: Terms, weight: Weight, k: int | None) -> pl.Expr:
    """Expected weight of the position of the first relevant row.

    Only the first block with a relevant row matters: with `hits` of `size` rows relevant, T_(i+1) = T_i * (1 - hits / (size - i)).
    """
    s = t.slots()
    chance = s.hits / (s.size - s.index)
    return s.sum(within(weight, k)(s.position) * s.product_before(1 - chance) * chance)


def reciprocal_rank(t: Terms, *, k: int | None = None) -> pl.Expr:
    """1 / position of the first relevant row, 0 if it lies beyond k."""
    return first_hit(t, reciprocal, k)


def success(t: Terms, *, k: int | None = None) -> pl.Expr:
    """1 if one of the first k rows is relevant, else 0."""
    return first_hit(t, lambda _: pl.lit(1.0), k)


def err(
    t: Terms,
    *,
    k: int | None = None,
    max_label: int = 4,
    discount: Literal["reciprocal", "log2"] = "reciprocal",
) -> pl.Expr:
    """Expected weight of the position where a user stops who is satisfied with probability (2^label - 1) / 2^max_label."""
    stop = gain_of(t.label, "exp2") / 2.0**max_label
    weight = within(reciprocal if discount == "reciprocal" else log_discount, k)
    return t.sum(t.product_before(1 - stop) * t.stop_in_block(stop, weight))
