"""Compatibility: how much of the ideal ranking nearest to a ranking is found in its first rows, at every depth."""

from __future__ import annotations

import polars as pl

from polars_rankeval.terms import Terms, total_weight


def compatibility(t: Terms, *, p: float = 0.95, normalize: bool = True) -> pl.Expr:
    """Rank-biased overlap with the ideal ranking: the sum over depths i of p^(i-1) · (rows in the first i of both) / i, divided by that of the ideal ranking with itself.

    The ideal ranking has all relevant rows in descending order of label; rows of one label keep the order of the ranking, and those that
    were not retrieved come last. Depths go down to the end of the longer of the two. With `normalize=False` the divisor is the sum of
    the weights p^(i-1). Webber, Moffat and Zobel, TOIS 2010; Clarke, Vtyurina and Smucker, TOIS 2021.
    """
    depth = pl.max_horizontal(t.n, t.relevant)
    # A row is in the first i of both from the deeper of its two places on.
    place = pl.max_horizontal(t.lo, t.ideal_place)
    overlap = t.sum(_agreement(t, p, place - 1, depth))
    if not normalize:
        return overlap * (1 - p) / (1 - _power(p, depth))
    # The ideal ranking shares all rows with itself down to R, and R rows from there on.
    above = (1 - _power(p, t.relevant)) / (1 - p)
    below = t.relevant * t.of_query(_agreement(t, p, t.relevant, depth))
    return overlap / (above + below)


def _agreement(t: Terms, p: float, first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """What one shared row adds at the depths after `first` up to `last`."""
    return total_weight(
        t, lambda depth: _power(p, depth - 1) / depth, first, last, where=first < last
    )


def _power(p: float, exponent: pl.Expr) -> pl.Expr:
    return pl.lit(p).pow(exponent)
