"""The table: which column plays which part, and what its columns may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_rankeval._typing import Names, Source
from polars_rankeval.errors import RankEvalError

#: The key of a table that is one ranking.
WHOLE = "rk:whole"


@dataclass(frozen=True)
class Columns:
    """The parts that columns play in a table, checked against its schema."""

    query: list[str]
    doc: str
    label: str
    scores: list[str]
    by: list[str]

    @classmethod
    def of(
        cls,
        schema: pl.Schema,
        *,
        query: Names | None,
        doc: str,
        label: str,
        score: Names,
        by: Names | None,
        others: Sequence[str] = (),
        output: Sequence[str] = (),
        weight: str | None = None,
    ) -> Columns:
        """Check that the columns are there and of a kind that can play their part.

        `others` are further columns that are read; `output` names columns of the result, which no key may have.
        """
        columns = cls(names(query), doc, label, names(score), names(by))
        if not columns.scores:
            msg = "name at least one score column"
            raise RankEvalError(msg)
        used = [*columns.shown, label, *columns.scores, *others]
        missing = [name for name in dict.fromkeys(used) if name not in schema]
        if missing:
            msg = (
                f"column {missing[0]!r} not found; the table has {', '.join(map(repr, schema)) or 'no columns'}"
                f"{_nearest(missing[0], list(schema))}"
            )
            raise pl.exceptions.ColumnNotFoundError(msg)
        twice = [name for i, name in enumerate(columns.shown) if name in columns.shown[:i]]
        if twice:
            msg = f"column {twice[0]!r} is named twice among query and by"
            raise RankEvalError(msg)
        clash = [name for name in columns.shown if name in output]
        if clash:
            msg = f"the result has a column {clash[0]!r} of its own: rename the column {clash[0]!r} of the table"
            raise RankEvalError(msg)
        for name, part in [(label, "label"), *((s, "score") for s in columns.scores)]:
            dtype = schema[name]
            numeric = dtype.is_numeric() or dtype == pl.Null
            if not numeric and not (part == "label" and dtype == pl.Boolean):
                msg = (
                    f"{part} column {name!r} has dtype {dtype}, but a {part} is a number"
                    f"{' or a Boolean' if part == 'label' else ''}: cast it, for example with "
                    f"pl.col({name!r}).cast(pl.Float64)"
                )
                raise RankEvalError(msg)
        if weight is not None and not schema[weight].is_numeric():
            msg = f"weight column {weight!r} has dtype {schema[weight]}, but a weight is a number"
            raise RankEvalError(msg)
        return columns

    @property
    def shown(self) -> list[str]:
        """The groups and the query."""
        return [*self.by, *self.query]

    @property
    def keys(self) -> list[str]:
        """What makes a ranking: the groups and the query, or a constant if the whole table is one."""
        return self.shown or [WHOLE]

    def keyed(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """The table with all its keys."""
        return table if self.shown else table.with_columns(pl.lit(0, dtype=pl.Int8).alias(WHOLE))


def label_number(schema: pl.Schema, label: str) -> pl.Expr:
    """The label column as numbers that compare with `rel` as Float64 does: a narrower float would round `rel`."""
    dtype = schema[label]
    if dtype.is_float():
        return pl.col(label).cast(pl.Float64)
    return pl.col(label) if dtype.is_numeric() else pl.col(label).cast(pl.UInt8)


def number(value: object, above: float = float("-inf")) -> bool:
    """Whether a parameter is a finite number above a bound."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and above < value < float("inf")
    )


def finish(table: Source, plan: pl.LazyFrame) -> pl.DataFrame | pl.LazyFrame:
    """DataFrame in, DataFrame out."""
    if isinstance(table, pl.DataFrame):
        return plan.collect()
    return plan


def names(value: Names | None) -> list[str]:
    """A name, several or none, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a keyword value that is not one of those allowed."""
    if value not in allowed:
        msg = f"{name}={value!r} is not known: use {', '.join(map(repr, allowed))}{_nearest(str(value), list(allowed))}"
        raise RankEvalError(msg)


def _nearest(word: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only a failure needs it

    near = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
