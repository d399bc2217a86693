"""What type checkers are told of the keywords is what the functions take."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import pytest

import polars_rankeval as rk
from polars_rankeval import _typing as types
from polars_rankeval.evaluation import prepare


def keywords(function: Callable[..., Any]) -> set[str]:
    kinds = signature(function).parameters.values()
    return {p.name for p in kinds if p.kind is Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("function", "declared"),
    [
        (rk.per_query, types.Evaluated),
        (rk.evaluate, types.Evaluated),
        (rk.check, types.Roles),
        (rk.tie_blocks, types.Ranked),
        (rk.pr_curve, types.Curve),
        (rk.roc_curve, types.Curve),
        (rk.confusion, types.Called),
    ],
)
def test_keywords(function: Callable[..., Any], declared: type) -> None:
    assert keywords(function) == set(declared.__annotations__)


def test_defaults_are_said_twice_and_agree() -> None:
    ours, inner = signature(rk.per_query).parameters, signature(prepare).parameters
    for name in types.Asked.__annotations__:
        assert ours[name].default == inner[name].default, name


def test_a_table_that_is_one_ranking_is_not_cut(tmp_path: Any) -> None:
    for call in (
        lambda: rk.per_query(rk.sample(), "AP", query=None, contiguous=True),
        lambda: rk.evaluate_files(rk.sample(), "AP", query=None, output=tmp_path / "ap.parquet"),
    ):
        with pytest.raises(rk.RankEvalError, match="cannot be evaluated in parts"):
            call()
