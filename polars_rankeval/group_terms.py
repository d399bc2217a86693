"""Terms from expressions over the label and score of one group: `group_by().agg`, `over` and `select`.

All expressions are as long as the group and in the order of its ranking; rows that do not count are masked, not filtered
out, because Polars may compute common parts of one length and not of several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import polars as pl

from polars_rankeval._typing import Ties
from polars_rankeval.errors import RankEvalError
from polars_rankeval.terms import Beside, Gains, Level, Slots, Terms, Weight, counts, gained


class _Masked(Terms):
    """What both rankings of a group share: sums and products over the rows that count."""

    counted: pl.Expr

    def sum(self, value: pl.Expr | float) -> pl.Expr:
        return pl.when(self.counted).then(value).otherwise(0.0).sum()

    def max(self, value: pl.Expr) -> pl.Expr:
        return pl.when(self.counted).then(value).max().fill_null(0.0).clip(lower_bound=0.0)

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        return _product_before(self.counted, factor)

    def sum_through(self, value: pl.Expr) -> pl.Expr:
        return pl.when(self.counted).then(value).otherwise(0.0).cum_sum()

    def positions(self, last: pl.Expr) -> pl.Expr:
        return _positions()


class GroupTerms(_Masked):
    """Terms of a group whose rows are ranked by `score`, null for rows that are not retrieved; `doc` is read by `ties="doc"`."""

    def __init__(
        self,
        label: pl.Expr,
        score: pl.Expr,
        level: Level,
        ties: Ties,
        doc: pl.Expr | None = None,
        weight: pl.Expr | None = None,
    ) -> None:
        self.ties, self._all_labels = ties, label
        self.mass: pl.Expr | None = None
        self._ranking = (label, score, ties, doc, weight)
        self.n = score.count().cast(pl.Int64)
        self.relevant = counts(label, level).sum().cast(pl.Int64)
        self.label = _in_order(label, label, score, ties, doc)
        retrieved = _positions() <= self.n
        self.counted = retrieved & counts(self.label, level)
        if ties in ("block", "expected"):
            ranked = score.sort(descending=True, nulls_last=True)
            among = pl.when(self.counted).then(ranked)
            self.lo, self.hi = _rank(ranked, "min"), _rank(ranked, "max")
            self.before, self.through = _rank(among, "min") - 1, _rank(among, "max")
            if weight is not None:
                self._weigh(weight.cast(pl.Float64), label, score, level)
        else:
            self.lo = self.hi = _positions()
            self.through = self.counted.cast(pl.Int64).cum_sum()
            self.before = self.through - 1

    def _weigh(self, weight: pl.Expr, label: pl.Expr, score: pl.Expr, level: Level) -> None:
        """Replace positions and counts by sums of weights."""
        self.mass = _in_order(weight, label, score, "order", None)
        counted = pl.when(self.counted).then(self.mass).otherwise(0.0)

        def down_to(value: pl.Expr, position: pl.Expr) -> pl.Expr:
            return value.cum_sum().gather(pl.when(position > 0).then(position - 1)).fill_null(0.0)

        first, last = self.lo - 1, self.hi
        self.lo, self.hi = down_to(self.mass, first) + 1, down_to(self.mass, last)
        self.before, self.through = down_to(counted, first), down_to(counted, last)
        self.n = weight.filter(score.is_not_null()).sum()
        self.relevant = weight.filter(counts(label, level)).sum()

    def sum(self, value: pl.Expr | float) -> pl.Expr:
        if self.mass is None:
            return super().sum(value)
        heavy = self.counted & (self.mass > 0)
        return pl.when(heavy).then(value * self.mass).otherwise(0.0).sum()

    def of_query(self, value: pl.Expr) -> pl.Expr:
        return value.first()

    def slots(self) -> Slots:
        return _GroupSlots(self)

    def at(self, level: Level) -> Terms:
        label, score, ties, doc, weight = self._ranking
        return GroupTerms(label, score, level, ties, doc, weight)

    def ideal(self, gains: Gains = ()) -> Terms:
        return _IdealTerms(gained(self._all_labels, gains))

    @property
    def ideal_place(self) -> pl.Expr:
        return _rank(self.label, "ordinal")

    def beside(self, gains: Gains = ()) -> Beside:
        return _GroupBeside(gained(self._all_labels, gains))

    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> pl.Expr:
        if self.ties in ("block", "expected"):
            msg = (
                f"ERR of tied graded rows (ties={self.ties!r}) has no form as an expression inside a group: "
                'use per_query("ERR"), or ties="best", "worst", "order" or "doc"'
            )
            raise RankEvalError(msg)
        return stop * weight(self.lo)


class _IdealTerms(_Masked):
    """All rows of the group by descending gain; rows of one gain are a block."""

    ties: Ties = "expected"

    def __init__(self, label: pl.Expr) -> None:
        self.label = label
        self.counted = counts(label, None)
        self.lo, self.hi = _rank(label, "min"), _rank(label, "max")

    def slots(self) -> NoReturn:
        raise NotImplementedError

    def at(self, level: Level) -> NoReturn:
        raise NotImplementedError

    def ideal(self, gains: Gains = ()) -> Terms:
        return self

    @property
    def ideal_place(self) -> NoReturn:
        raise NotImplementedError

    def beside(self, gains: Gains = ()) -> NoReturn:
        raise NotImplementedError

    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> NoReturn:
        raise NotImplementedError


class _GroupBeside(Beside):
    """The ideal ranking in order: its row at a position lies beside the row that the group has there."""

    def __init__(self, gain: pl.Expr) -> None:
        ordered = pl.when(gain > 0).then(gain).sort(descending=True, nulls_last=True)
        self._ideal = _IdealTerms(ordered)
        self.lo, self.hi, self.gain = (
            x.forward_fill() for x in (self._ideal.lo, self._ideal.hi, ordered)
        )

    def above(self, value: Callable[[Terms], pl.Expr]) -> pl.Expr:
        through = self._ideal.sum_through(value(self._ideal))
        first = pl.when(_positions() == self._ideal.lo)
        return first.then(through - value(self._ideal)).forward_fill()

    def onwards(self, value: Callable[[Terms], pl.Expr]) -> pl.Expr:
        through = self._ideal.sum_through(value(self._ideal))
        last = pl.when(_positions() == self._ideal.hi)
        return last.then(1 / through).otherwise(0.0).cum_sum(reverse=True)


class _GroupSlots(Slots):
    """The rows of the first block with a hit stand for its positions."""

    def __init__(self, terms: GroupTerms) -> None:
        first = pl.when(terms.counted).then(terms.lo).min()
        self._inside = (terms.lo == first).fill_null(False)
        self.position = _positions()
        self.index = self.position - first
        self.size = self._inside.sum().cast(pl.Int64)
        self.hits = (self._inside & terms.counted).sum().cast(pl.Int64)

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        return _product_before(self._inside, factor)

    def sum(self, value: pl.Expr) -> pl.Expr:
        # The first hit leaves room for the others behind it.
        reachable = self._inside & (self.index <= self.size - self.hits)
        return pl.when(reachable).then(value).otherwise(0.0).sum()


def _positions() -> pl.Expr:
    return pl.int_range(1, pl.len() + 1, dtype=pl.Int64)


def _product_before(counted: pl.Expr, factor: pl.Expr) -> pl.Expr:
    return pl.when(counted).then(factor).otherwise(1.0).cum_prod().shift(1, fill_value=1.0)


def _rank(value: pl.Expr, method: str) -> pl.Expr:
    return value.rank(method, descending=True).cast(pl.Int64)  # type: ignore[arg-type]


def _in_order(
    value: pl.Expr, label: pl.Expr, score: pl.Expr, ties: Ties, doc: pl.Expr | None
) -> pl.Expr:
    """The rows of a group in the order of the policy; those that are not retrieved come last."""
    keys, descending, nulls_last = [score], [True], [True]
    if ties in ("best", "worst"):
        best = ties == "best"
        keys, descending, nulls_last = [*keys, label], [True, best], [True, best]
    elif ties == "doc":
        if doc is None:
            msg = 'ties="doc" needs doc=, the column that breaks the ties'
            raise RankEvalError(msg)
        keys, descending, nulls_last = [*keys, doc], [True, True], [True, True]
    return value.sort_by(keys, descending=descending, nulls_last=nulls_last, maintain_order=True)
