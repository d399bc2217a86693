"""`tie_blocks`: which rows share a score, and the positions they take."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import oracle
import polars_rankeval as rk
from strategies import Table, tables
from ways import WAYS, Way

COLUMNS = ["lo", "hi", "size", "relevant"]


@settings(max_examples=30)
@given(table=tables(), way=st.sampled_from(list(WAYS)))
def test_blocks_are_those_of_the_oracle(table: Table, way: str) -> None:
    got = WAYS[way](table.to_frame(), lambda f: f.rankeval.tie_blocks())
    assert got.columns == ["query_id", "score", *COLUMNS]
    assert got.schema["score"] == table.score
    assert all(got.schema[name] == pl.Int64 for name in COLUMNS)
    expected = []
    for query, rows in sorted(table.by_query().items(), key=lambda item: item[0].encode()):
        hi = 0
        for block in oracle.tie_blocks(rows):
            lo, hi = hi + 1, hi + len(block)
            relevant = sum((row.label or 0) > 0 for row in block)
            expected.append((query, block[0].score, lo, hi, len(block), relevant))
    assert got.rows() == expected


def test_groups_and_names(way: Way) -> None:
    frame = pl.DataFrame(
        {
            "g": ["y", "y", "x", "x", "x"],
            "q": [1, 1, 1, 1, 2],
            "s": [1, 1, 1, 2, None],
            "l": [True, False, True, None, True],
            "lo": ["a column that does not matter"] * 5,
        }
    )
    got = way(
        frame.drop("lo"), lambda f: f.rankeval.tie_blocks(query="q", score="s", label="l", by="g")
    )
    assert got.columns == ["g", "q", "s", *COLUMNS]
    assert got.rows() == [
        ("x", 1, 2, 1, 1, 1, 0),
        ("x", 1, 1, 2, 2, 1, 1),
        ("y", 1, 1, 1, 2, 2, 1),
    ]
    wide = way(frame, lambda f: f.rankeval.tie_blocks(query="q", score="s", label="l", by="g"))
    assert_frame_equal(wide, got)


def test_several_query_columns(way: Way) -> None:
    frame = pl.DataFrame({"a": [1, 1, 2], "b": [1, 1, 1], "score": [1, 1, 1], "label": 1})
    got = way(frame, lambda f: f.rankeval.tie_blocks(query=["b", "a"]))
    assert got.rows() == [(1, 1, 1, 1, 2, 2, 2), (1, 2, 1, 1, 1, 1, 1)]


def test_one_zero(way: Way) -> None:
    frame = pl.DataFrame({"query_id": [1, 1, 1], "score": [-0.0, 0.0, -0.0], "label": [1, 0, 1]})
    got = way(frame, lambda f: f.rankeval.tie_blocks())
    assert got.rows() == [(1, 0.0, 1, 3, 3, 2)]


@pytest.mark.parametrize("rows", [0, 3])
def test_nothing_retrieved(rows: int, way: Way) -> None:
    schema: dict[str, Any] = {"query_id": pl.String, "score": pl.Float32, "label": pl.Int8}
    frame = pl.DataFrame({"query_id": "a", "score": [None] * rows, "label": 1}, schema=schema)
    got = way(frame, lambda f: f.rankeval.tie_blocks())
    assert got.height == 0
    assert got.schema == {
        "query_id": pl.String,
        "score": pl.Float32,
        **dict.fromkeys(COLUMNS, pl.Int64),
    }


def test_refusals(way: Way) -> None:
    frame = pl.DataFrame(
        {"query_id": [1, 2], "score": [float("nan"), 1.0], "label": [1.0, float("inf")]}
    )
    with pytest.raises(rk.RankEvalError, match=r"score column 'score' is NaN in 1 row.*query 1:"):
        way(frame, lambda f: f.rankeval.tie_blocks())
    with pytest.raises(rk.RankEvalError, match=r"label column 'label' is NaN or inf.*query 2:"):
        way(frame.with_columns(score=1), lambda f: f.rankeval.tie_blocks())
    with pytest.raises(rk.RankEvalError, match=r"query column 'q' is null in 1 row"):
        way(
            pl.DataFrame({"q": [None, 1], "score": [1, 2], "label": [1, 1]}),
            lambda f: f.rankeval.tie_blocks(query="q"),
        )


@pytest.mark.parametrize("name", ["score", *COLUMNS])
def test_column_of_the_result(name: str) -> None:
    frame = pl.DataFrame({"q": [1], "s": [1.0], "label": [1], "by": [1]})
    renamed = frame.rename({"by": name})
    score = "s" if name != "score" else "score"
    with pytest.raises(rk.RankEvalError, match=f"the result has a column '{name}' of its own"):
        rk.tie_blocks(renamed, query="q", score=score, by=name)


def test_missing_column() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="'score' not found"):
        rk.tie_blocks(pl.DataFrame({"query_id": [1], "label": [1]}))


def test_schema_is_known_before_the_plan_runs() -> None:
    frame = pl.LazyFrame({"query_id": [1], "label": [1], "score": [0.5], "more": ["x"]})
    plan = rk.tie_blocks(frame)
    assert plan.collect_schema() == plan.collect().schema
