"""The table: which column plays which part, and what its columns may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_rankeval._typing import Names
from polars_rankeval.errors import RankEvalError


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
        query: Names,
        doc: str,
        label: str,
        score: Names,
        by: Names | None,
        others: Sequence[str] = (),
        output: Sequence[str] = (),
    ) -> Columns:
        """Check that the columns are there and of a kind that can play their part.

        `others` are further columns that are read; `output` names columns of the result, which no key may have.
        """
        columns = cls(names(query), doc, label, names(score), names(by))
        if not columns.query or not columns.scores:
            msg = "name at least one query column and one score column"
            raise RankEvalError(msg)
        used = [*columns.keys, label, *columns.scores, *others]
        missing = [name for name in dict.fromkeys(used) if name not in schema]
        if missing:
            msg = (
                f"column {missing[0]!r} not found; the table has {', '.join(map(repr, schema)) or 'no columns'}"
                f"{_nearest(missing[0], list(schema))}"
            )
            raise pl.exceptions.ColumnNotFoundError(msg)
        twice = [name for i, name in enumerate(columns.keys) if name in columns.keys[:i]]
        if twice:
            msg = f"column {twice[0]!r} is named twice among query and by"
            raise RankEvalError(msg)
        clash = [name for name in columns.keys if name in output]
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
        return columns

    @property
    def keys(self) -> list[str]:
        """What makes a ranking: the groups and the query."""
        return [*self.by, *self.query]


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
