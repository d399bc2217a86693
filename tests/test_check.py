"""`check`: the full validation passes a table on as it came, or says what is wrong."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from strategies import Table, tables
from ways import WAYS, Way


def table(**changed: Any) -> pl.DataFrame:
    """A table without fault, but for the columns given."""
    columns: dict[str, Any] = {
        "query_id": [2, 1, 2, 1],
        "doc_id": ["x", "x", "y", "y"],
        "label": [1.0, None, 0.0, 2.0],
        "score": [0.5, 0.5, None, 0.1],
        "more": ["as", "it", "came", "in"],
    }
    return pl.DataFrame(columns | changed)


@settings(max_examples=20)
@given(drawn=tables(), way=st.sampled_from(list(WAYS)))
def test_tables_without_fault(drawn: Table, way: str) -> None:
    frame = drawn.to_frame()
    assert_frame_equal(WAYS[way](frame, lambda f: f.rankeval.check()), frame)


@pytest.mark.parametrize("frame", [table(), table().drop("doc_id"), table().clear()])
def test_the_table_comes_back(frame: pl.DataFrame, way: Way) -> None:
    assert_frame_equal(way(frame, lambda f: f.rankeval.check()), frame)


def test_evaluation_goes_on(way: Way) -> None:
    got = way(table(), lambda f: f.rankeval.check().rankeval.evaluate("AP"))
    assert_frame_equal(got, rk.evaluate(table(), "AP"))


NAN, INF = float("nan"), float("inf")
FAULTS: dict[str, tuple[pl.DataFrame, str]] = {
    "query": (table(query_id=[2, None, 2, 1]), r"query column 'query_id' is null in 1 row:"),
    "score": (table(score=[NAN, 0.5, NAN, 0.1]), r"'score' is NaN in 2 rows, .* query 2:"),
    "label": (table(label=[1.0, -INF, 0.0, 2.0]), r"'label' is NaN or infinite in 1 row, .* 1:"),
    "document": (table(doc_id=["x", "x", None, "y"]), r"'doc_id' is null in 1 row, .* query 2"),
    "twice": (
        table(doc_id=["x", "x", "y", "x"]),
        r"1 pair of query and document in 2 rows of column 'doc_id', .* 'x' of query 1:",
    ),
    "twice, one of them not retrieved": (
        table(doc_id=["x", "x", "x", "y"]),
        r"1 pair of query and document in 2 rows .* 'x' of query 2:",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str, way: Way) -> None:
    frame, message = FAULTS[fault]
    with pytest.raises(rk.RankEvalError, match=message):
        way(frame, lambda f: f.rankeval.check())


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found_whatever_is_done_next(fault: str) -> None:
    frame, message = FAULTS[fault]
    plan = frame.lazy().rankeval.check()  # type: ignore[attr-defined]
    for rest in (plan.select("more"), plan.filter(pl.col("more") == "it"), plan.select(pl.len())):
        for engine in ("in-memory", "streaming"):
            with pytest.raises(rk.RankEvalError, match=message):
                rest.collect(engine=engine)


def test_pairs_are_counted(way: Way) -> None:
    frame = pl.DataFrame(
        {"query_id": ["a"] * 5 + ["b"], "doc_id": [1, 1, 1, 2, 2, 1], "label": 1, "score": 1}
    )
    with pytest.raises(rk.RankEvalError, match="2 pairs of query and document in 5 rows"):
        way(frame, lambda f: f.rankeval.check())


def test_a_document_may_stand_in_every_group(way: Way) -> None:
    frame = pl.DataFrame(
        {"query_id": [1, 1], "doc_id": ["x", "x"], "label": 1, "score": 1, "model": ["m", "n"]}
    )
    assert_frame_equal(way(frame, lambda f: f.rankeval.check(by="model")), frame)
    with pytest.raises(rk.RankEvalError, match="1 pair"):
        way(frame, lambda f: f.rankeval.check())
    with pytest.raises(rk.RankEvalError, match="document 'x' of query model='m', query_id=1"):
        way(frame.with_columns(model=pl.lit("m")), lambda f: f.rankeval.check(by="model"))


@pytest.mark.parametrize(
    "docs",
    [
        pl.Series([1, 2, 1, 3], dtype=pl.UInt64),
        pl.Series([b"a", b"", b"a", b"b"]),
        pl.Series(["a", "", "a", "b"], dtype=pl.Categorical),
        pl.Series([0.0, 1.0, -0.0, 2.0]),
    ],
    ids=str,
)
def test_dtype_of_document(docs: pl.Series, way: Way) -> None:
    frame = table().with_columns(docs.alias("doc_id"))
    with pytest.raises(rk.RankEvalError, match=r"1 pair .* of query 2:"):
        way(frame, lambda f: f.rankeval.check())
    fine = frame.with_columns(query_id=pl.Series([1, 2, 3, 4]))
    assert_frame_equal(way(fine, lambda f: f.rankeval.check()), fine)


def test_several_scores(way: Way) -> None:
    frame = table(other=[0.1, NAN, None, 0.2])
    with pytest.raises(rk.RankEvalError, match=r"'other' is NaN in 1 row, .* query 1:"):
        way(frame, lambda f: f.rankeval.check(score=["score", "other"]))


def test_schema_and_missing_columns() -> None:
    with pytest.raises(rk.RankEvalError, match="score column 'more' has dtype String"):
        rk.check(table(), score="more")
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="'labl' not found"):
        rk.check(table(), label="labl")
