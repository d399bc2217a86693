"""Names for the types that recur in signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, get_args

import polars as pl

Ties: TypeAlias = Literal["block", "expected", "best", "worst", "order", "doc"]
NoRelevant: TypeAlias = Literal["zero", "null", "one", "error"]
Gain: TypeAlias = Literal["linear", "exp2"]
#: The rows are in memory: those of the whole table, or of one of several parts at a time.
AtHand: TypeAlias = Literal["whole", "part"] | None

TIES: tuple[Ties, ...] = get_args(Ties)
NO_RELEVANT: tuple[NoRelevant, ...] = get_args(NoRelevant)
GAINS: tuple[Gain, ...] = get_args(Gain)

#: A column name, or several.
Names: TypeAlias = str | Sequence[str]
#: A column name or an expression.
IntoExpr: TypeAlias = str | pl.Expr
#: Whatever `rk.scan` makes a LazyFrame of.
Source: TypeAlias = Any
#: Lazy in, lazy out; DataFrame in, DataFrame out. Whatever else `rk.scan` takes comes out lazy.
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame, pl.DataFrame | pl.LazyFrame)


class Roles(TypedDict, total=False):
    """Keywords that name the columns of a table."""

    query: Names | None
    doc: str
    label: str
    score: Names
    by: Names | None


class Asked(Roles, total=False):
    """Keywords that say what is asked of every query."""

    ties: Ties
    no_relevant: NoRelevant
    judged_only: bool


class Evaluated(Asked, total=False):
    """Keywords of `per_query` and `evaluate`."""

    weight: str | None
    contiguous: bool
    batch_rows: int | None
    progress: bool


class Ranked(TypedDict, total=False):
    """Keywords that name the columns of a table with one score."""

    query: Names | None
    label: str
    score: str
    by: Names | None


class Counted(Ranked, total=False):
    """Keywords of counts of relevant rows."""

    rel: float | None
    weight: str | None


class Curve(Counted, total=False):
    """Keywords of `pr_curve` and `roc_curve`."""

    endpoint: bool
    drop_collinear: bool


class Called(Counted, total=False):
    """Keywords of `confusion`."""

    threshold: float | Sequence[float] | None
    k: int | Sequence[int] | None
    beta: float
