"""Terms from the columns of a ranked frame: sums are collected here and computed for all measures at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from polars_rankeval._typing import Ties
from polars_rankeval.checks import CODE
from polars_rankeval.ranking import (
    COUNT,
    HI,
    KEY,
    LABEL,
    LO,
    N,
    Rows,
    changed,
    relevant_name,
    sort_key,
)
from polars_rankeval.terms import Beside, Gains, Level, Slots, Terms, Weight, counts, gained
from polars_rankeval.tied_cascade import BLOCK_FIRST, stop_in_tied_blocks

PLACE = "rk:place"


def _over_query(factor: pl.Expr) -> pl.Expr:
    """Exclusive running product over the rows of each query."""
    return factor.cum_prod().shift(1, fill_value=1.0).over(CODE)


def _positions(last: pl.Expr) -> pl.Expr:
    return pl.int_range(1, last + 1, dtype=pl.Int64)


@dataclass
class Sums:
    """Sums, and maxima, over the rows of one source, to be computed for every query in one pass."""

    prefix: str
    values: list[tuple[Literal["sum", "max"], pl.Expr]] = field(default_factory=list)

    def add(self, value: pl.Expr, how: Literal["sum", "max"] = "sum") -> pl.Expr:
        """Ask for a sum; returns the column that will hold it, 0 for a query without rows."""
        known = (i for i, (h, other) in enumerate(self.values) if h == how and other.meta.eq(value))
        index = next(known, len(self.values))
        if index == len(self.values):
            self.values.append((how, value))
        return pl.col(f"{self.prefix}{index}").fill_null(0.0)

    def of(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row per query with all the sums."""
        names = [f"{self.prefix}{i}" for i in range(len(self.values))]
        pairs = list(zip(names, self.values, strict=True))
        return (
            rows.select(CODE, *(v.cast(pl.Float64).alias(name) for name, (_, v) in pairs))
            .group_by(CODE)
            .agg(
                pl.col(name).sum() if how == "sum" else pl.col(name).max()
                for name, (how, _) in pairs
            )
        )


class Ranked:
    """The sums that the formulas ask of one ranking, and the frames that give them.

    Parameters
    ----------
    ties
        The policy.
    base
        The level of the rows that are ranked; every other level asked for is a subset of it.
    weighted
        Rows have weights: the ranked rows are those of `weighted_blocks`.
    """

    def __init__(self, ties: Ties, base: Level, *, weighted: bool = False) -> None:
        self.ties: Ties = ties
        self.base = base
        self.weighted = weighted
        self.levels: list[Level] = []
        self.rows = Sums("rk:rows:")
        self.ideals: dict[Gains, Sums] = {}
        self.besides: dict[Gains, FrameBeside] = {}
        self.placed = False
        self.slots: dict[Level, Sums] = {}
        self.stops: list[tuple[pl.Expr, Weight, pl.Expr]] = []

    def terms(self, level: Level) -> Terms:
        """Terms at a level."""
        if level not in self.levels:
            self.levels.append(level)
        return WeightedTerms(self, level) if self.weighted else FrameTerms(self, level)

    def totals(self, ranked: pl.LazyFrame, rows: Rows, queries: pl.LazyFrame) -> pl.LazyFrame:
        """`queries` with a column for each sum asked for; `ranked` are the ranked rows."""
        frames: list[pl.LazyFrame] = []
        if not self.weighted:
            ranked = self._with_levels(ranked)
            if self.placed:
                ranked = _with_places(ranked, _grades(rows, ()))
            for gains, beside in self.besides.items():
                ranked = beside.join(ranked, _grades(rows, gains))
            for i, (stop, weight, first) in enumerate(self.stops):
                ranked = stop_in_tied_blocks(ranked, stop, weight, first, f"rk:stop:{i}")
        if self.rows.values:
            frames.append(self.rows.of(ranked))
        frames.extend(sums.of(_slot_rows(ranked, level)) for level, sums in self.slots.items())
        frames.extend(sums.of(_grades(rows, gains)) for gains, sums in self.ideals.items())
        if len(frames) > 1:
            # One join with all queries instead of one for each frame.
            frames = [pl.concat(frames, how="diagonal").group_by(CODE).agg(pl.all().sum())]
        return queries.join(frames[0], on=CODE, how="left") if frames else queries

    def _with_levels(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows counted at each level above the block, and down to its end."""
        first = changed(CODE, 1)
        # Keys of rows that were ranked apart say nothing of each other.
        changes = [first.alias("rk:first_row"), (first | changed(KEY, 1)).alias(BLOCK_FIRST)]
        counted = {level: counts(pl.col(LABEL), level).cast(pl.Int64) for level in self.levels}
        last = pl.col(BLOCK_FIRST).shift(-1, fill_value=True)
        rows = rows.with_columns(
            *changes, *(c.cum_sum().alias(f"rk:so_far:{level}") for level, c in counted.items())
        )
        columns = []
        for level, c in counted.items():
            so_far = pl.col(f"rk:so_far:{level}")
            above = pl.when(pl.col("rk:first_row")).then(so_far - c).forward_fill()
            if self.ties in ("block", "expected"):
                through = pl.when(last).then(so_far).backward_fill()
                before = pl.when(pl.col(BLOCK_FIRST)).then(so_far - c).forward_fill()
            else:
                through, before = so_far, so_far - c
            columns += [
                (through - above).alias(f"rk:through:{level}"),
                (before - above).alias(f"rk:before:{level}"),
                (so_far - above).alias(f"rk:so_far:{level}"),
            ]
        return rows.with_columns(columns)


class FrameTerms(Terms):
    """Terms at one level of a ranked frame."""

    def __init__(self, ranked: Ranked, level: Level) -> None:
        self._ranked, self._level = ranked, level
        self.ties = ranked.ties
        self.lo, self.hi, self.label = pl.col(LO), pl.col(HI), pl.col(LABEL)
        self.through = pl.col(f"rk:through:{level}")
        self.before = pl.col(f"rk:before:{level}")
        self.n, self.relevant = pl.col(N), pl.col(relevant_name(level))

    def _counted(self, value: pl.Expr, otherwise: float) -> pl.Expr:
        if self._level == self._ranked.base:
            return value
        return pl.when(counts(pl.col(LABEL), self._level)).then(value).otherwise(otherwise)

    def sum(self, value: pl.Expr | float) -> pl.Expr:
        value = value if isinstance(value, pl.Expr) else pl.lit(value)
        # A literal alone would be one row in a select.
        return self._ranked.rows.add(self._counted(value + 0.0 * pl.col(LO), 0.0))

    def max(self, value: pl.Expr) -> pl.Expr:
        return self._ranked.rows.add(self._counted(value, 0.0), "max")

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        return _over_query(self._counted(factor, 1.0))

    def sum_through(self, value: pl.Expr) -> pl.Expr:
        return self._counted(value, 0.0).cum_sum().over(CODE)

    def at(self, level: Level) -> Terms:
        return self._ranked.terms(level)

    def positions(self, last: pl.Expr) -> pl.Expr:
        return _positions(last)

    def slots(self) -> Slots:
        sums = self._ranked.slots.setdefault(self._level, Sums(f"rk:slots:{self._level}:"))
        return FrameSlots(sums)

    def ideal(self, gains: Gains = ()) -> Terms:
        prefix = f"rk:ideal:{len(self._ranked.ideals)}:"
        return IdealTerms(self._ranked.ideals.setdefault(gains, Sums(prefix)))

    @property
    def ideal_place(self) -> pl.Expr:
        self._ranked.placed = True
        return pl.col(PLACE)

    def beside(self, gains: Gains = ()) -> Beside:
        prefix = f"rk:beside:{len(self._ranked.besides)}:"
        return self._ranked.besides.setdefault(gains, FrameBeside(prefix))

    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> pl.Expr:
        if self.ties not in ("block", "expected"):
            return stop * weight(self.lo)
        stop = self._counted(stop, 0.0)
        # The first row of the block may be one that counts at another level only, which no sum at this level sees.
        first = counts(self.label, self._level) & (
            pl.col(f"rk:so_far:{self._level}") == self.before + 1
        )
        self._ranked.stops.append((stop, weight, first))
        return pl.col(f"rk:stop:{len(self._ranked.stops) - 1}")


class WeightedTerms(FrameTerms):
    """Terms at one level of weighted blocks: positions and counts are sums of weights."""

    def __init__(self, ranked: Ranked, level: Level) -> None:
        super().__init__(ranked, level)
        self._mass = pl.col(f"rk:mass:{level}")

    def sum(self, value: pl.Expr | float) -> pl.Expr:
        return self._ranked.rows.add(
            pl.when(self._mass > 0).then(value * self._mass).otherwise(0.0)
        )

    def max(self, value: pl.Expr) -> pl.Expr:
        return self._ranked.rows.add(pl.when(self._mass > 0).then(value).otherwise(0.0), "max")


class IdealTerms(Terms):
    """All rows with a positive gain by descending gain; one row of the frame stands for all rows of one gain."""

    ties: Ties = "expected"

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self.lo, self.hi, self.label = pl.col(LO), pl.col(HI), pl.col(LABEL)
        self.before, self.through = self.lo - 1, self.hi

    def sum(self, value: pl.Expr | float) -> pl.Expr:
        return self._sums.add(value * pl.col(COUNT))

    def max(self, value: pl.Expr) -> pl.Expr:
        return self._sums.add(value, "max")

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        raise NotImplementedError

    def sum_through(self, value: pl.Expr) -> pl.Expr:
        return (value * pl.col(COUNT)).cum_sum().over(CODE)

    def at(self, level: Level) -> Terms:
        raise NotImplementedError

    def positions(self, last: pl.Expr) -> pl.Expr:
        return _positions(last)

    def slots(self) -> Slots:
        raise NotImplementedError

    def ideal(self, gains: Gains = ()) -> Terms:
        return self

    @property
    def ideal_place(self) -> pl.Expr:
        raise NotImplementedError

    def beside(self, gains: Gains = ()) -> Beside:
        raise NotImplementedError

    def stop_in_block(self, stop: pl.Expr, weight: Weight) -> pl.Expr:
        raise NotImplementedError


class FrameBeside(Beside):
    """Columns of the ideal ranking, looked up by the position of each row."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._ideal = IdealTerms(Sums(prefix))  # sums are read block by block, never asked for
        #: what to compute from the blocks: a value of each, and what becomes of it
        self._values: list[tuple[pl.Expr, Callable[[pl.Expr], pl.Expr]]] = []
        self.lo, self.hi, self.gain = (pl.col(f"{prefix}{name}") for name in (LO, HI, LABEL))

    def above(self, value: Callable[[Terms], pl.Expr]) -> pl.Expr:
        total = value(self._ideal) * pl.col(COUNT)
        return self._column(total, lambda v: v.cum_sum() - v)

    def onwards(self, value: Callable[[Terms], pl.Expr]) -> pl.Expr:
        total = value(self._ideal) * pl.col(COUNT)
        return self._column(total, lambda v: (1 / v.cum_sum()).cum_sum(reverse=True))

    def _column(self, value: pl.Expr, of_query: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
        self._values.append((value, of_query))
        return pl.col(f"{self._prefix}{len(self._values) - 1}")

    def join(self, rows: pl.LazyFrame, grades: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the columns of the block beside each."""
        names = [f"{self._prefix}{i}" for i in range(len(self._values))]
        pairs = list(zip(names, self._values, strict=True))
        blocks = (
            grades.with_columns(value.alias(name) for name, (value, _) in pairs)
            .with_columns(
                of_query(pl.col(name)).over(CODE).alias(name) for name, (_, of_query) in pairs
            )
            .select(CODE, *(pl.col(c).alias(f"{self._prefix}{c}") for c in (LO, HI, LABEL)), *names)
        )
        return rows.join_asof(
            blocks,
            left_on=LO,
            right_on=f"{self._prefix}{LO}",
            by=CODE,
            coalesce=False,
            check_sortedness=False,
        )


class FrameSlots(Slots):
    """Slots from the columns of the frame that `_slot_rows` makes."""

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self.index, self.size, self.hits = pl.col("rk:index"), pl.col("rk:size"), pl.col("rk:hits")
        self.position = pl.col(LO) + self.index

    def product_before(self, factor: pl.Expr) -> pl.Expr:
        # Most first hits stand alone; those are kept out of the groups, each of which costs.
        tied = self.size > 1
        product = factor.cum_prod().shift(1, fill_value=1.0).over(pl.when(tied).then(pl.col(CODE)))
        return pl.when(tied).then(product).otherwise(1.0)

    def sum(self, value: pl.Expr) -> pl.Expr:
        return self._sums.add(value)


def weighted_blocks(
    rows: Rows, weight: pl.Expr, levels: list[Level], queries: pl.LazyFrame
) -> pl.LazyFrame:
    """One row per tie block: where it starts and ends, and what counts in it, in sums of weights."""
    masses = {level: f"rk:mass:{level}" for level in levels}
    blocks = (
        rows.frame.filter(rows.retrieved)
        .select(
            rows.key(),
            rows.code.alias(CODE),
            weight.alias(COUNT),
            *(
                pl.when(counts(rows.label, level)).then(weight).otherwise(0.0).alias(mass)
                for level, mass in masses.items()
            ),
        )
        .group_by(KEY)
        .agg(pl.col(CODE).first(), pl.col(COUNT, *masses.values()).sum())
        .sort(KEY)
        .with_columns(
            pl.col(COUNT).cum_sum().over(CODE).alias(HI),
            *(
                pl.col(mass).cum_sum().over(CODE).alias(f"rk:through:{level}")
                for level, mass in masses.items()
            ),
        )
        .with_columns(
            (pl.col(HI) - pl.col(COUNT) + 1).alias(LO),
            *(
                (pl.col(f"rk:through:{level}") - pl.col(mass)).alias(f"rk:before:{level}")
                for level, mass in masses.items()
            ),
        )
    )
    return blocks.join(queries, on=CODE, how="left")


def _slot_rows(rows: pl.LazyFrame, level: Level) -> pl.LazyFrame:
    """One row for each position where the first hit of a query can fall."""
    through, before, so_far = (
        pl.col(f"rk:{name}:{level}") for name in ("through", "before", "so_far")
    )
    size, hits = pl.col(HI) - pl.col(LO) + 1, through - before
    return (
        rows.filter(counts(pl.col(LABEL), level) & (so_far == 1))
        .select(CODE, LO, size.alias("rk:size"), hits.alias("rk:hits"))
        .with_columns(pl.int_ranges(0, pl.col("rk:size") - pl.col("rk:hits") + 1).alias("rk:index"))
        .explode("rk:index")
    )


def _with_places(rows: pl.LazyFrame, grades: pl.LazyFrame) -> pl.LazyFrame:
    """Rows with their place in the ideal ranking."""
    same_label = pl.col(LABEL).cum_count().over(CODE, LABEL).cast(pl.Int64)
    first = grades.select(CODE, LABEL, pl.col(LO).alias(PLACE))
    # Sums over the rows above depend on the order, which joins do not keep of themselves.
    return rows.join(first, on=[CODE, LABEL], how="left", maintain_order="left").with_columns(
        pl.col(PLACE) + same_label - 1
    )


def _grades(rows: Rows, gains: Gains) -> pl.LazyFrame:
    """The distinct positive gains of each query, descending: how often, and where they stand in the ideal ranking."""
    so_far = pl.col(COUNT).cum_sum()
    above = pl.when(changed(CODE, 1)).then(so_far - pl.col(COUNT)).forward_fill()
    # A label that is not above 0 has a gain only if it is given one.
    grades = rows.labels(min((value for value, _ in gains if value <= 0), default=None))
    if gains:
        grades = (
            grades.with_columns(gained(pl.col(LABEL), gains).alias(LABEL))
            .filter(pl.col(LABEL) > 0)
            .group_by(CODE, LABEL)
            .agg(pl.col(COUNT).sum())
        )
    return (
        grades.with_columns(sort_key(pl.col(CODE), pl.col(LABEL), pl.Float64()))
        .sort(KEY)
        .with_columns((so_far - above).alias(HI))
        .with_columns((pl.col(HI) - pl.col(COUNT) + 1).alias(LO))
    )
