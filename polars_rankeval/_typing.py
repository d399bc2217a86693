"""Names for the types that recur in signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import polars as pl

Ties: TypeAlias = Literal["block", "expected", "best", "worst", "order", "doc"]
NoRelevant: TypeAlias = Literal["zero", "null", "one", "error"]
Gain: TypeAlias = Literal["linear", "exp2"]

TIES: tuple[Ties, ...] = get_args(Ties)
NO_RELEVANT: tuple[NoRelevant, ...] = get_args(NoRelevant)
GAINS: tuple[Gain, ...] = get_args(Gain)

#: A column name, or several.
Names: TypeAlias = str | Sequence[str]
#: A column name or an expression.
IntoExpr: TypeAlias = str | pl.Expr
#: Whatever `rk.scan` makes a LazyFrame of.
Source: TypeAlias = Any
#: Lazy in, lazy out; DataFrame in, DataFrame out.
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
