"""The three ways in which Polars runs a plan, and how results are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

#: Runs a function of a frame; the function sees a DataFrame or a LazyFrame, the result is collected.
Way: TypeAlias = Callable[[pl.DataFrame, Callable[[Any], Any]], pl.DataFrame]


def eager(frame: pl.DataFrame, function: Callable[[Any], Any]) -> pl.DataFrame:
    """DataFrame in, DataFrame out."""
    result = function(frame)
    assert isinstance(result, pl.DataFrame)
    return result


def in_memory(frame: pl.DataFrame, function: Callable[[Any], Any]) -> pl.DataFrame:
    """LazyFrame in, LazyFrame out, collected by the in-memory engine."""
    plan = function(frame.lazy())
    assert isinstance(plan, pl.LazyFrame)
    return plan.collect(engine="in-memory")


def streaming(frame: pl.DataFrame, function: Callable[[Any], Any]) -> pl.DataFrame:
    """LazyFrame in, LazyFrame out, collected by the streaming engine."""
    plan = function(frame.lazy())
    assert isinstance(plan, pl.LazyFrame)
    return plan.collect(engine="streaming")


def called(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A method of the namespace with its arguments, as a function of the frame."""
    return lambda frame: getattr(frame.rankeval, name)(*args, **kwargs)


WAYS: dict[str, Way] = {"eager": eager, "in-memory": in_memory, "streaming": streaming}


def same(got: float | None, expected: float | None, tolerance: float = 1e-12) -> bool:
    """Both null, or equal up to the tolerance, which is relative for values above 1."""
    if got is None or expected is None:
        return got is expected
    return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance)


def differences(
    got: Mapping[Any, Sequence[float | None]],
    expected: Mapping[Any, Sequence[float | None]],
    names: Sequence[str],
) -> list[str]:
    """What differs, in words, for an assertion that it is nothing."""
    found = [f"query {q!r} is missing" for q in expected if q not in got]
    found += [f"query {q!r} is not expected" for q in got if q not in expected]
    found += [
        f"{name} of query {query!r}: got {a}, expected {b}"
        for query in expected
        if query in got
        for name, a, b in zip(names, got[query], expected[query], strict=True)
        if not same(a, b)
    ]
    return found
