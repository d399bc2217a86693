"""Family 1: position-weighted sums, and the counts.

Each is a sum over rows of value(row) * weight(position), so a tied row takes the mean of the weights of its block: exact,
since every sum is linear.
"""

from __future__ import annotations

import polars as pl

from polars_rankeval._typing import Gain
from polars_rankeval.terms import Gains, Terms, gained, mean_weight, share


def gain_of(label: pl.Expr, gain: Gain) -> pl.Expr:
    """Gain of a positive label."""
    # 2.0 ** x would be read as pow(literal, x); exp2 of a large label must stay Float64, as labels here are.
    return label if gain == "linear" else pl.lit(2.0).pow(label) - 1


def log_discount(position: pl.Expr) -> pl.Expr:
    """1 / log2(position + 1)."""
    return 1 / (position + 1).cast(pl.Float64).log(2)


def precision(t: Terms, *, k: int) -> pl.Expr:
    """Relevant rows among the first k, divided by k."""
    return t.sum(share(t, k)) / k


def recall(t: Terms, *, k: int) -> pl.Expr:
    """Relevant rows among the first k, divided by R."""
    return t.sum(share(t, k)) / t.relevant


def f_score(t: Terms, *, k: int, beta: float = 1.0) -> pl.Expr:
    """(1 + beta^2) hits / (beta^2 R + k): the F of P@k and R@k."""
    return (1 + beta**2) * t.sum(share(t, k)) / (beta**2 * t.relevant + k)


def r_precision(t: Terms) -> pl.Expr:
    """Relevant rows among the first R, divided by R."""
    return t.sum(share(t, t.relevant)) / t.relevant


def cg(t: Terms, *, k: int | None = None, gain: Gain = "linear", gains: Gains = ()) -> pl.Expr:
    """Sum of the gains down to k."""
    return t.sum(gain_of(gained(t.label, gains), gain) * share(t, k))


def dcg(t: Terms, *, k: int | None = None, gain: Gain = "linear", gains: Gains = ()) -> pl.Expr:
    """Sum down to k of gain / log2(position + 1)."""
    return t.sum(gain_of(gained(t.label, gains), gain) * mean_weight(t, log_discount, k))


def ideal_dcg(
    t: Terms, *, k: int | None = None, gain: Gain = "linear", gains: Gains = ()
) -> pl.Expr:
    """DCG of all rows of the query in descending order of gain."""
    return dcg(t.ideal(gains), k=k, gain=gain)


def ndcg(t: Terms, *, k: int | None = None, gain: Gain = "linear", gains: Gains = ()) -> pl.Expr:
    """DCG divided by the ideal DCG."""
    return dcg(t, k=k, gain=gain, gains=gains) / ideal_dcg(t, k=k, gain=gain, gains=gains)


def rbp(t: Terms, *, k: int | None = None, p: float = 0.8) -> pl.Expr:
    """(1 - p) times the sum over relevant rows of p^(position - 1)."""
    return (1 - p) * t.sum(mean_weight(t, lambda position: pl.lit(p).pow(position - 1), k))


def judged(t: Terms, *, k: int | None = None) -> pl.Expr:
    """Judged rows among the first k, divided by the number of rows there."""
    rows = t.n if k is None else pl.min_horizontal(t.n, k)
    return pl.when(t.n > 0).then(t.sum(share(t, k)) / rows).otherwise(0.0)


def set_precision(t: Terms) -> pl.Expr:
    """Relevant retrieved rows divided by retrieved rows, 0 if nothing was retrieved."""
    return pl.when(t.n > 0).then(t.sum(1.0) / t.n).otherwise(0.0)


def set_recall(t: Terms) -> pl.Expr:
    """Relevant retrieved rows divided by relevant rows."""
    return t.sum(1.0) / t.relevant


def set_f(t: Terms, *, beta: float = 1.0) -> pl.Expr:
    """F of the precision and recall of all retrieved rows."""
    return (1 + beta**2) * t.sum(1.0) / (beta**2 * t.relevant + t.n)


def retrieved_count(t: Terms) -> pl.Expr:
    """Number of retrieved rows."""
    return t.n.cast(pl.Float64)


def relevant_count(t: Terms) -> pl.Expr:
    """Number of relevant rows, retrieved or not."""
    return t.relevant.cast(pl.Float64)


def relevant_retrieved_count(t: Terms) -> pl.Expr:
    """Number of relevant rows that were retrieved."""
    return t.sum(1.0)
