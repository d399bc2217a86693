"""The vocabulary of formulas: what a measure may know about the ranking of one query.

A formula is written once, over `Terms`. Two classes supply them: `frame_terms` from the columns of a
ranked frame (the fast path of `per_query`), `group_terms` from rank expressions over label and score
inside a group (what the expression functions return).

Terms are made for a *level*, which says which rows count: `None` is label > 0, a number is label >= that
number. Positions are 1-based. A *block* is a set of tied rows that take the positions `lo..hi` together; under
the policies that give each row a position of its own, a block is one row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import polars as pl

from polars_rankeval._typing import Ties

#: Which rows count: None for label > 0, a number for label >= that number.
Level: TypeAlias = float | None
#: The gain of some labels; the others are their own gain.
Gains: TypeAlias = tuple[tuple[float, float], ...]
#: Every row that has a label, negative ones too.
POOLED: Level = float("-inf")
#: A weight of a position.
Weight: TypeAlias = Callable[[pl.Expr], pl.Expr]


def counts(label: pl.Expr, level: Level) -> pl.Expr:
    """Whether a row of this label counts at this level; null does not."""
    return (label > 0 if level is None else label >= level).fill_null(False)


def gained(label: pl.Expr, gains: Gains) -> pl.Expr:
    """The gain of a label: what it is given, or else the label itself if it is not negative."""
    if not gains:
        return label
    gain = label.clip(lower_bound=0)
    for value, instead in gains:
        gain = pl.when(label == value).then(float(instead)).otherwise(gain)
    return gain


class Slots(ABC):
    """The positions of the first block that holds a relevant row, as far as the first hit can fall.

    One value for each position, in order, in each query; `index` counts them from 0.
    """

    index: pl.Expr
    position: pl.Expr
    size: pl.Expr
    hits: pl.Expr

    @abstractmethod
    def product_before(self, factor: pl.Expr) -> pl.Expr:
        """Product of the factors of the slots before each slot of the query."""

    @abstractmethod
    def sum(self, value: pl.Expr) -> pl.Expr:
        """Sum over the slots of a query, 0 if there is none."""


class Terms(ABC):
    """The terms of one query at one level."""

    ties: Ties

    # One value for each counted, retrieved row, in the order of the ranking.
    lo: pl.Expr
    hi: pl.Expr
    label: pl.Expr
    #: counted rows above the block, and down to its end
    before: pl.Expr
    through: pl.Expr

    # One value for the query.
    #: retrieved rows
    n: pl.Expr
    #: counted rows, retrieved or not
    relevant: pl.Expr

    @property
    def size(self) -> pl.Expr:
        """Rows of the block."""
        return self.hi - self.lo + 1

    @property
    def hits(self) -> pl.Expr:
        """Counted rows of the block."""
        return self.through - self.before

    @abstractmethod
    def sum(self, value: pl.Expr | float) -> pl.Expr:
        """Sum over the counted, retrieved rows of a query, 0 if there is none."""

    @abstractmethod
    def max(self, value: pl.Expr) -> pl.Expr:
        """Largest value among the counted, retrieved rows of a query, 0 if there is none or it is negative."""

    @abstractmethod
    def product_before(self, factor: pl.Expr) -> pl.Expr:
        """Product of the factors of the counted rows before each one, in the order of the ranking."""

    @abstractmethod
    def sum_through(self, value: pl.Expr) -> pl.Expr:
        """Sum over the counted rows down to each one, itself included, in the order of the ranking."""

    @abstractmethod
    def at(self, level: Level) -> Terms:
        """The terms of the same ranking at another level; `before` and `through` may be read at the rows of any lower level."""

    @abstractmethod
    def positions(self, last: pl.Expr) -> pl.Expr:
        """The positions 1, 2, ... at least up to `last`, a number for the query or for all."""

    def of_query(self, value: pl.Expr) -> pl.Expr:
        """A value that was looked up for the query, as one value; inside a group a look-up gives a list."""
        return value

    @abstractmethod
    def slots(self) -> Slots:
        """Where the first counted row of the query may stand."""

    @abstractmethod
    def ideal(self, gains: Gains = ()) -> Terms:
        """The terms of the ranking of all rows of the query, retrieved or not, by descending gain.

        Its `label` is the gain; only positive gains count.
        """

    @property
    @abstractmethod
    def ideal_place(self) -> pl.Expr:
        """Where each counted row stands in the ideal ranking that keeps rows of one label in the order of this one, for labels above 0.

        Rows that were not retrieved stand behind the others of their label.
        """

    @abstractmethod
    def beside(self, gains: Gains = ()) -> Beside:
        """The part of the ideal ranking that lies beside each counted row."""

    @abstractmethod
    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> pl.Expr:
        """Expected weight of the position where a user who enters the block stops, on its first counted row.

        `stop` is the probability that a counted row satisfies the user. Zero on the other rows of the block.
        """


class Beside(ABC):
    """The block of the ideal ranking that takes the position of a row, or the last one if the position lies beyond.

    One value for each counted, retrieved row, null in a query without positive gains.
    """

    #: positions and gain of the block
    lo: pl.Expr
    hi: pl.Expr
    gain: pl.Expr

    @abstractmethod
    def above(self, value: Callable[[Terms], pl.Expr]) -> pl.Expr:
        """Sum of a value over the rows of the blocks above."""

    @abstractmethod
    def onwards(self, value: Callable[[Terms], pl.Expr]) -> pl.Expr:
        """Over the blocks from this one on, each once, the sum of 1 / (sum of a value over the rows down to its end)."""


def within(weight: Weight, k: int | None) -> Weight:
    """The weight up to position k, 0 beyond."""
    if k is None:
        return weight
    return lambda position: pl.when(position <= k).then(weight(position)).otherwise(0.0)


def places(terms: Terms, k: int | pl.Expr | None) -> pl.Expr:
    """Number of positions of the block that are not beyond k."""
    if k is None:
        return terms.size
    return pl.min_horizontal(terms.hi, k) - pl.min_horizontal(terms.lo - 1, k)


def share(terms: Terms, k: int | pl.Expr | None) -> pl.Expr:
    """Share of the block's positions that are not beyond k: the expected hit of each of its rows."""
    return pl.lit(1.0) if k is None else places(terms, k) / terms.size


def mean_weight(terms: Terms, weight: Weight, k: int | None) -> pl.Expr:
    """Mean over the block's positions of a decreasing weight, 0 beyond k: what each tied row expects.

    A row with a position of its own takes the weight as it stands; a block takes the difference of two running sums.
    """
    alone = within(weight, k)(terms.lo)
    if terms.ties not in ("block", "expected"):
        return alone
    first, last = terms.lo - 1, terms.hi
    if k is not None:
        first, last = pl.min_horizontal(first, k), pl.min_horizontal(last, k)
    tied = terms.hi > terms.lo
    return (
        pl.when(tied)
        .then(total_weight(terms, weight, first, last, where=tied) / terms.size)
        .otherwise(alone)
    )


def total_weight(
    terms: Terms, weight: Weight, first: pl.Expr, last: pl.Expr, *, where: pl.Expr
) -> pl.Expr:
    """Sum of the weights of the positions after `first` up to `last`, on the rows where it is asked for."""
    running = weight(terms.positions(pl.when(where).then(last).max().fill_null(0))).cum_sum()
    # Positions count from 1, so the sum up to position 0 is a null here; so are rows that do not ask, where the table may end earlier.
    first, last = (
        running.gather(pl.when(where & (x > 0)).then(x - 1)).fill_null(0.0) for x in (first, last)
    )
    return last - first
