"""Terms from expressions over the label and score of one group: `group_by().agg`, `over` and `select`."""

from __future__ import annotations

import polars as pl

from polars_rankeval._typing import Ties
from polars_rankeval.errors import RankEvalError
from polars_rankeval.terms import Level, Slots, Terms, Weight, counts


def product_before(factor: pl.Expr) -> pl.Expr:
    """Exclusive running product inside a group."""
    return factor.cum_prod().shift(1, fill_value=1.0)


class _Ranked(Terms):
    """What the two ways of ranking a group share: sums are plain aggregations."""

    def sum(self, value: pl.Expr | float) -> pl.Expr:
        # A plain number still needs a value for each row.
        return (value + pl.lit(0.0) * self.lo).sum()

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        return product_before(factor)


class GroupTerms(_Ranked):
    """Terms of a group whose rows are ranked by `score`.

    `score` is null for rows that are not retrieved; `tie` breaks ties by hand: the label for `best` and `worst`, the document for
    `doc`, nothing for `order`.
    """

    def __init__(
        self, label: pl.Expr, score: pl.Expr, level: Level, ties: Ties, doc: pl.Expr | None = None
    ) -> None:
        self.ties = ties
        self._label, self._score = label, score
        retrieved = score.is_not_null()
        self.n = retrieved.sum().cast(pl.Int64)
        self.relevant = counts(label, level).sum().cast(pl.Int64)
        if ties in ("block", "expected"):
            chosen = retrieved & counts(label, level)
            self._lo, self._hi = _rank(score, "min"), _rank(score, "max")
            # Rows in the order of the ranking, as a running product needs them.
            order = _rank(score, "ordinal")
            self.lo, self.hi, self.label = (
                x.filter(chosen).sort_by(order.filter(chosen)) for x in (self._lo, self._hi, label)
            )
            among = score.filter(chosen)
            self.through = _rank(among, "max").sort_by(order.filter(chosen))
            self.before = (_rank(among, "min") - 1).sort_by(order.filter(chosen))
            self._first = self._lo.filter(chosen).min()
            return
        keys, descending, nulls_last = _tie_break(label, score, ties, doc)
        # Labels in the order of the ranking; rows that are not retrieved come last, as their score is null.
        ranked = label.sort_by(
            keys, descending=descending, nulls_last=nulls_last, maintain_order=True
        )
        position = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
        chosen = (position <= self.n) & counts(ranked, level)
        self.lo = self.hi = position.filter(chosen)
        self.label = ranked.filter(chosen)
        self.through = chosen.cast(pl.Int64).cum_sum().filter(chosen)
        self.before = self.through - 1

    def slots(self) -> Slots:
        if self.ties in ("block", "expected"):
            return _BlockSlots(self)
        return _RowSlots(self)

    def ideal(self) -> Terms:
        return _IdealTerms(self._label)

    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> pl.Expr:
        if self.ties in ("block", "expected"):
            msg = (
                f"ERR of tied graded rows (ties={self.ties!r}) has no form as an expression inside a group: "
                'use per_query("ERR"), or ties="best", "worst", "order" or "doc"'
            )
            raise RankEvalError(msg)
        return stop * weight(self.lo)


class _IdealTerms(_Ranked):
    """All rows of the group with a positive label, by descending label; rows of one label are a block."""

    ties: Ties = "expected"

    def __init__(self, label: pl.Expr) -> None:
        self.label = label.filter(counts(label, None))
        self.lo, self.hi = _rank(self.label, "min"), _rank(self.label, "max")
        self.before, self.through = self.lo - 1, self.hi
        self.n = self.relevant = self.label.len()

    def slots(self) -> Slots:
        raise NotImplementedError

    def ideal(self) -> Terms:
        return self

    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> pl.Expr:
        raise NotImplementedError


class _BlockSlots(Slots):
    """The rows of the first block with a hit stand for its positions."""

    def __init__(self, terms: GroupTerms) -> None:
        inside = terms._lo == terms._first
        order = _rank(terms._score, "ordinal").filter(inside)
        self.position = order.sort()
        self.index = self.position - terms._first
        self.size = inside.sum().cast(pl.Int64)
        self.hits = terms.hits.filter(terms.lo == terms._first).first()

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        return product_before(factor)

    def sum(self, value: pl.Expr) -> pl.Expr:
        # After the last hit the chance is no longer a probability: those slots cannot be reached.
        return value.filter(self.index <= self.size - self.hits).sum()


class _RowSlots(Slots):
    """With a position for each row, the first hit is where it is."""

    def __init__(self, terms: GroupTerms) -> None:
        self.position = terms.lo.head(1)
        self.index = pl.lit(0)
        self.size = self.hits = pl.lit(1)

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        return pl.lit(1.0)

    def sum(self, value: pl.Expr) -> pl.Expr:
        return value.sum()


def _rank(score: pl.Expr, method: str) -> pl.Expr:
    return score.rank(method, descending=True).cast(pl.Int64)  # type: ignore[arg-type]


def _tie_break(
    label: pl.Expr, score: pl.Expr, ties: Ties, doc: pl.Expr | None
) -> tuple[list[pl.Expr], list[bool], list[bool]]:
    """Sort keys that put the rows of a group in the order of the policy."""
    keys, descending, nulls_last = [score], [True], [True]
    if ties in ("best", "worst"):
        keys.append(label)
        descending.append(ties == "best")
        nulls_last.append(ties == "best")
    elif ties == "doc":
        if doc is None:
            msg = 'ties="doc" needs doc=, the column that breaks the ties'
            raise RankEvalError(msg)
        keys.append(doc)
        descending.append(True)
        nulls_last.append(True)
    return keys, descending, nulls_last
