"""The rest of trec_eval's measures, and those that ir_measures adds.

Most read single positions, and have no expected value over tied rows here: they ask for a policy that gives each row a position.
"""

from __future__ import annotations

import polars as pl

from polars_rankeval.measures.precision import interpolated, precision_sum
from polars_rankeval.measures.weighted import log_discount
from polars_rankeval.terms import (
    POOLED,
    Gains,
    Terms,
    gained,
    mean_weight,
    share,
    total_weight,
)

_EPSILON = 1e-5
_TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def query_count(t: Terms) -> pl.Expr:
    """1 for each query."""
    return t.n * 0 + 1.0


def judged_nonrelevant_count(t: Terms) -> pl.Expr:
    """Number of retrieved rows that were judged not relevant."""
    return t.at(0).sum(1.0) - t.sum(1.0)


def set_average_precision(t: Terms) -> pl.Expr:
    """Precision times recall of all retrieved rows."""
    found = t.sum(1.0)
    return pl.when(t.n > 0).then(found * found / (t.n * t.relevant)).otherwise(0.0)


def set_relative_precision(t: Terms) -> pl.Expr:
    """Relevant retrieved rows, divided by as many as there could be."""
    return pl.when(t.n > 0).then(t.sum(1.0) / pl.min_horizontal(t.n, t.relevant)).otherwise(0.0)


def relative_precision(t: Terms, *, k: int) -> pl.Expr:
    """Relevant rows among the first k, divided by as many as there could be."""
    return t.sum(share(t, k)) / pl.min_horizontal(t.relevant, k)


def r_precision_multiple(t: Terms, *, times: float) -> pl.Expr:
    """Precision after a multiple of R rows, rounded up from a tenth."""
    rows = (times * t.relevant + 0.9).floor()
    return pl.when(rows > 0).then(t.sum(share(t, rows)) / rows).otherwise(0.0)


def utility(
    t: Terms,
    *,
    found: float = 1.0,
    noise: float = -1.0,
    missed: float = 0.0,
    rest: float = 0.0,
    collection: float = 0.0,
) -> pl.Expr:
    """Worth of the set of retrieved rows, each of the four cells of the contingency table with its own."""
    hits = t.sum(1.0)
    return (
        found * hits
        + noise * (t.n - hits)
        + missed * (t.relevant - hits)
        + rest * (collection + hits - t.n - t.relevant)
    )


def unjudged(t: Terms, *, k: int) -> pl.Expr:
    """Rows without a judgement among the first k, divided by k."""
    judged = t.at(0)
    return (pl.min_horizontal(t.n, k) - judged.sum(share(judged, k))) / k


def bpref(t: Terms) -> pl.Expr:
    """Mean over the relevant rows of 1 - (judged non-relevant rows above, at most R) / min(R, all judged non-relevant rows)."""
    judged = t.at(0)
    above = judged.through - t.through
    most = pl.min_horizontal(t.relevant, judged.relevant - t.relevant)
    # The division belongs behind the sums: inside, rows do not know their query.
    lost, free = t.sum(pl.min_horizontal(above, t.relevant)), t.sum(1.0)
    return (free - pl.when(lost > 0).then(lost / most).otherwise(0.0)) / t.relevant


def inferred_average_precision(t: Terms) -> pl.Expr:
    """AP where the precision above a relevant row is that of its judged rows, times the share of pooled ones."""
    judged, pooled = t.at(0).through - 1, t.at(POOLED).through - 1
    precise = (t.through - 1 + _EPSILON) / (judged + 2 * _EPSILON)
    return t.sum((1 + pooled * precise) / t.lo) / t.relevant


def interpolated_by_count(t: Terms, *, recall: float, version: int = 10) -> pl.Expr:
    """Largest precision from the point on where so many relevant rows were retrieved: recall times R, rounded as the version does."""
    wanted = recall * t.relevant
    count = (wanted + 0.5 if version >= 10 else wanted + 0.9).floor()
    return interpolated(t, t.through >= count)


def interpolated_mean(
    t: Terms, *, points: tuple[float, ...] = _TENTHS, version: int = 10
) -> pl.Expr:
    """Mean of the interpolated precision at several points."""
    total: pl.Expr = pl.lit(0.0)
    for recall in points:
        total += interpolated_by_count(t, recall=recall, version=version)
    return total / len(points)


def smoothed_average_precision(t: Terms) -> pl.Expr:
    """log((1 + s) / (1 + R - s)), where s is the sum of the precisions at the relevant rows."""
    total = precision_sum(t)
    return ((1 + total) / (1 + t.relevant - total)).log()


def binary_gain(t: Terms) -> pl.Expr:
    """Mean over the relevant rows of 1 / log2(2 + other rows above)."""
    return t.sum(log_discount(1 + t.lo - t.through)) / t.relevant


def gain(t: Terms, *, gains: Gains = ()) -> pl.Expr:
    """Gains divided by log2(2 + what the ideal ranking has gained more), over all gains; a row costs 1 at least."""
    beside, own = t.beside(gains), gained(t.label, gains)
    inside = pl.min_horizontal(t.lo, beside.hi) - beside.lo + 1
    cost = (
        beside.above(lambda ideal: pl.max_horizontal(ideal.label, 1.0))
        + inside * pl.max_horizontal(beside.gain, 1.0)
        + pl.max_horizontal(t.lo - beside.hi, 0)
    )
    behind = 1 + cost - t.sum_through(own)
    return t.sum(own * log_discount(behind)) / ideal_gain(t, gains)


def ideal_gain(t: Terms, gains: Gains = ()) -> pl.Expr:
    """Sum of the positive gains of the query."""
    ideal = t.ideal(gains)
    return ideal.sum(ideal.label)


def ndcg_at_relevant(t: Terms, *, gains: Gains = ()) -> pl.Expr:
    """Mean over the rows with a gain of the nDCG there; where it was not retrieved, of the whole ranking."""
    beside, value = t.beside(gains), _discounted(t, gains)
    ideal = t.ideal(gains)
    inside = total_weight(
        t, log_discount, beside.lo - 1, pl.min_horizontal(t.lo, beside.hi), where=beside.hi > 0
    )
    at_row = t.sum_through(value) / (beside.above(_ideal_discounted) + beside.gain * inside)
    positive = gained(t.label, gains) > 0
    found = t.sum(pl.when(positive).then(1.0).otherwise(0.0))
    everywhere = ideal.sum(1.0)
    total = t.sum(value) / ideal.sum(_ideal_discounted(ideal))
    there = t.sum(pl.when(positive).then(at_row).otherwise(0.0))
    return pl.max_horizontal(there + (everywhere - found) * total, 0.0) / everywhere


def ndcg_at_levels(t: Terms, *, gains: Gains = ()) -> pl.Expr:
    """Mean of the nDCG where the ideal ranking passes to a lower gain, and at the end of a ranking that is longer still."""
    graded = t.at(None if all(value > 0 for value, _ in gains) else 0)
    beside, value = graded.beside(gains), _discounted(graded, gains)
    ideal = graded.ideal(gains)
    levels, positive = ideal.sum(1 / ideal.size), ideal.sum(1.0)
    here = pl.when(graded.lo <= beside.hi).then(beside.onwards(_ideal_discounted)).otherwise(0.0)
    total = graded.sum(value) / ideal.sum(_ideal_discounted(ideal))
    longer = (t.n > positive + 1).cast(pl.Float64)
    return (graded.sum(value * here) + longer * total) / (levels + longer)


def _discounted(t: Terms, gains: Gains) -> pl.Expr:
    return gained(t.label, gains) * mean_weight(t, log_discount, None)


def _ideal_discounted(ideal: Terms) -> pl.Expr:
    return ideal.label * mean_weight(ideal, log_discount, None)


def graded_rbp(t: Terms, *, p: float = 0.9, gains: Gains = ()) -> pl.Expr:
    """RBP of gains that are divided by the largest of the query where that is above 1."""
    ideal = t.ideal(gains)
    largest = pl.max_horizontal(ideal.max(ideal.label), 1.0)
    return (1 - p) * t.sum(gained(t.label, gains) * _persistence(t, p)) / largest


def rbp_residual(t: Terms) -> pl.Expr:
    """What RBP (p=0.9) could gain if all rows without a judgement, and those behind the last, were relevant; 0 if all were judged."""
    judged = t.at(0)
    rest = 1 - 0.1 * judged.sum(_persistence(judged, 0.9))
    return pl.when(t.n > judged.sum(1.0)).then(rest).otherwise(0.0)


def _persistence(t: Terms, p: float) -> pl.Expr:
    return mean_weight(t, lambda position: pl.lit(p).pow(position - 1), None)


def accuracy(t: Terms, *, k: int | None = None) -> pl.Expr:
    """Share of (relevant, other) pairs of the first k rows in the right order; null without a pair."""
    inside = share(t, k)
    found = t.sum(inside)
    others = (t.n if k is None else pl.min_horizontal(t.n, k)) - found
    wrong = t.sum(inside * (t.lo - t.through))
    return pl.when((found > 0) & (others > 0)).then(1 - wrong / (found * others))
