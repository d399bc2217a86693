"""Measures of the precision-recall points at the ends of tie blocks.

A block without relevant rows only lowers precision, so the ends of the blocks that hold one are enough.
"""

from __future__ import annotations

import polars as pl

from polars_rankeval.terms import Terms


def pr_trapezoid(t: Terms) -> pl.Expr:
    """Area under the straight lines between the precision-recall points, from recall 0 and precision 1 on."""
    above = t.lo - 1
    left = pl.when(above > 0).then(t.before / above).otherwise(1.0)
    return t.sum((left + t.through / t.hi) / 2) / t.relevant


def max_f(t: Terms, *, beta: float = 1.0) -> pl.Expr:
    """Largest F at any threshold."""
    return t.max((1 + beta**2) * t.through / (beta**2 * t.relevant + t.hi))


def precision_at_recall(t: Terms, *, r: float) -> pl.Expr:
    """Largest precision at any threshold where recall is at least r, 0 if there is none."""
    return t.max(pl.when(t.through / t.relevant >= r).then(t.through / t.hi).otherwise(0.0))


def recall_at_precision(t: Terms, *, p: float) -> pl.Expr:
    """Largest recall at any threshold where precision is at least p, 0 if there is none."""
    return t.max(pl.when(t.through / t.hi >= p).then(t.through / t.relevant).otherwise(0.0))
