"""Family 3: precision at relevant rows, and the share of pairs in the right order."""

from __future__ import annotations

import polars as pl

from polars_rankeval.measures.cascade import reciprocal
from polars_rankeval.terms import Terms, mean_weight, places


def average_precision(t: Terms, *, k: int | None = None) -> pl.Expr:
    """1/R times the sum over relevant rows down to k of the precision there."""
    return precision_sum(t, k) / t.relevant


def precision_sum(t: Terms, k: int | None = None) -> pl.Expr:
    """Sum over relevant rows down to k of the precision there."""
    rows = places(t, k)
    if t.ties == "expected":
        # A row at place i of its block meets, on average, (i - 1)(hits - 1)/(size - 1) of the block's other relevant rows.
        others = pl.when(t.size > 1).then((t.hits - 1) / (t.size - 1)).otherwise(0.0)
        constant = t.before + 1 - others * t.lo
        value = constant * mean_weight(t, reciprocal, k) + others * rows / t.size
    else:
        # Precision at the end of the block, or at k where k cuts it; each of its rows is inside with this share.
        inside = rows / t.size
        end = t.hi if k is None else pl.min_horizontal(t.hi, k)
        value = inside * (t.before + inside * t.hits) / end
    return t.sum(value)


def interpolated(t: Terms, reached: pl.Expr) -> pl.Expr:
    """Largest precision at the end of the blocks where a recall is reached, 0 if it never is."""
    return t.max(pl.when(reached).then(t.through / t.hi).otherwise(0.0))


def interpolated_precision(t: Terms, *, recall: float) -> pl.Expr:
    """Largest precision at any position where the recall is at least this."""
    # Not recall * R: a quotient is the number nearest to the fraction, as the number given is.
    return interpolated(t, t.through / t.relevant >= recall)


def auc(t: Terms) -> pl.Expr:
    """Share of (relevant, other) pairs of retrieved rows in the right order, ties counting half."""
    found = t.sum(1.0)
    others = t.n - found
    # Rows below a block that are not relevant: all rows below it less the relevant ones below it.
    below = t.n * found - t.sum(t.hi) - (found * found - t.sum(t.through))
    tied = t.sum(t.size - t.hits) / 2
    return pl.when((found > 0) & (others > 0)).then((below + tied) / (found * others))
