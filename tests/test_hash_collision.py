"""Keys that are not integers are told apart by a hash: if two collide, the table is refused."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_rankeval as rk
from polars_rankeval import ranking
from ways import Way


@pytest.fixture
def collide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the codes of all hashed keys equal."""
    real: Callable[..., Any] = ranking.query_code

    def weak(*args: Any, **kwargs: Any) -> Any:
        code = real(*args, **kwargs)
        return dataclasses.replace(code, expr=code.expr * 0) if code.hashed else code

    for name, module in list(sys.modules.items()):
        if name.startswith("polars_rankeval") and getattr(module, "query_code", None) is real:
            monkeypatch.setattr(module, "query_code", weak)


FRAME = pl.DataFrame({"query_id": ["a", "b", "b"], "label": [1, 0, 1], "score": [1, 2, 1]})


@pytest.mark.usefixtures("collide")
@pytest.mark.parametrize("ties", ["block", "best", "order"])
def test_refused(ties: str, way: Way) -> None:
    with pytest.raises(rk.RankEvalError, match=r"'query_id'.* share a 64-bit hash.*integer"):
        way(FRAME, lambda f: f.rankeval.per_query("AP", ties=ties))


@pytest.mark.usefixtures("collide")
def test_keys_of_several_columns_are_hashed(way: Way) -> None:
    frame = FRAME.with_columns(by=1, query_id=pl.Series([1, 2, 2]))
    with pytest.raises(rk.RankEvalError, match="share a 64-bit hash"):
        way(frame, lambda f: f.rankeval.evaluate("AP", by="by"))


@pytest.mark.usefixtures("collide")
def test_integer_keys_are_not_hashed(way: Way) -> None:
    frame = FRAME.with_columns(query_id=pl.Series([1, 2, 2]))
    got = way(frame, lambda f: f.rankeval.per_query("AP"))
    assert got.rows() == [(1, 1.0), (2, 0.5)]


@pytest.mark.usefixtures("collide")
def test_one_query_cannot_collide(way: Way) -> None:
    got = way(FRAME.filter(query_id="b"), lambda f: f.rankeval.per_query("AP"))
    assert got.rows() == [("b", 0.5)]
