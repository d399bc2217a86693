"""SVMlight files and group sizes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from polars_rankeval import svmlight
from polars_rankeval.svmlight import svmlight_features

LETOR = """\
# a line of comment
2 qid:10032 1:0.056537 2:0.000000 46:0.076923 #docid = GX029-35-5894638 inc = 0.0119881192468859 prob = 0.139842
0 qid:10032 1:0.279152 2:-1e-3 46:1.5 # docid = GX030-77-6315042 inc = 1

1\tqid:10036  1:1   46:.25
-1 qid:10036 46:3 # just words: 1:5
"""


@pytest.fixture(params=[0, svmlight.FEW], ids=["many features", "few features"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are searched for a few features and taken apart for many, which nobody may notice."""
    monkeypatch.setattr(svmlight, "FEW", request.param)


both_ways = pytest.mark.usefixtures("_both_ways")


@both_ways
def test_letor(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text(LETOR)
    found = rk.scan_svmlight(path, features=[1, 46]).collect()
    assert found.to_dict(as_series=False) == {
        "query_id": [10032, 10032, 10036, 10036],
        "doc_id": ["GX029-35-5894638", "GX030-77-6315042", None, "just words: 1:5"],
        "label": [2.0, 0.0, 1.0, -1.0],
        "feature_1": [0.056537, 0.279152, 1.0, 0.0],
        "feature_46": [0.076923, 1.5, 0.25, 3.0],
    }
    assert svmlight_features(path) == [1, 2, 46]
    (tmp_path / "train.svm.gz").write_bytes(gzip.compress(LETOR.encode()))
    again = rk.scan_svmlight([path, tmp_path / "train.svm.gz"], features={1: "bm25"}).collect()
    assert again.height == 8
    assert again.columns == ["query_id", "doc_id", "label", "bm25"]


@both_ways
@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("x qid:1 1:2", "of the form"),
        ("1 1:2", "of the form"),
        ("1 qid:a 1:2", "of the form"),
        ("1 qid: 1:2", "of the form"),
        ("1 qid:1 1:two", "`1:<number>`"),
        ("1 qid:1 1:", "`1:<number>`"),
    ],
)
def test_malformed_line(line: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / "train.svm"
    path.write_text(f"1 qid:1 1:2\n\n{line}\n")
    plan = rk.scan_svmlight(path, features=[1])
    with pytest.raises(rk.RankEvalError) as error:
        plan.collect()
    assert f"{path}, line 3: not of the form" in str(error.value)
    assert part in str(error.value)
    assert line in str(error.value)


@both_ways
def test_braces_in_the_path(tmp_path: Path) -> None:
    path = tmp_path / "a{}b[1].svm"
    path.write_text("x qid:1\n")
    with pytest.raises(rk.RankEvalError, match=r"a\{\}b\[1\].svm, line 1: "):
        rk.scan_svmlight(path).collect()


@both_ways
def test_columns_not_used_are_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "train.svm"
    path.write_text("1 qid:1 1:two 2:3\n")
    assert rk.scan_svmlight(path, features=[1, 2]).select("feature_2").collect().item() == 3.0


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(rk.RankEvalError, match="no such file"):
        rk.scan_svmlight(tmp_path / "none.svm")
    with pytest.raises(rk.RankEvalError, match="at least one"):
        rk.scan_svmlight([])
    (tmp_path / "a.svm").write_text("1 qid:1\n")
    bad: Any = ["one"]
    with pytest.raises(rk.RankEvalError, match="its number"):
        rk.scan_svmlight(tmp_path / "a.svm", features=bad)
    with pytest.raises(rk.RankEvalError, match="two columns"):
        rk.scan_svmlight(tmp_path / "a.svm", features={1: "label"})


number = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 4), number, number), min_size=1))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]) -> None:
    path = tmp_path_factory.mktemp("svm") / "t.svm"
    schema = {"query_id": pl.Int64, "label": pl.Float64, "bm25": pl.Float64, "dense": pl.Float64}
    table = pl.DataFrame(rows, schema, orient="row")
    rk.write_svmlight(table, path, features=["bm25", "dense"])
    again = rk.scan_svmlight(path, features={1: "bm25", 2: "dense"}).drop("doc_id").collect()
    assert_frame_equal(again, table)


@both_ways
def test_sparse_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text(
        "1 qid:1 7:0.5 300:2\n"
        "0 qid:1\n"
        "2 qid:2\t2:1 \t7:3  # 2:9\r\n"
        "1 qid:2 2:4\n"
        "0 qid:3 2:5 2:6 02:7 x 7\n"
    )
    features = {300: "a", 2: "b", 7: "c", 5: "d"}
    read = rk.scan_svmlight(path, features=features)
    assert read.select(features.values()).collect().to_dict(as_series=False) == {
        "a": [2.0, 0.0, 0.0, 0.0, 0.0],
        "b": [0.0, 0.0, 1.0, 4.0, 5.0],
        "c": [0.5, 0.0, 3.0, 0.0, 0.0],
        "d": [0.0] * 5,
    }
    assert read.head(2).select("a").collect()["a"].to_list() == [2.0, 0.0]
    assert read.filter(pl.col("b") > 3).select("query_id").collect()["query_id"].to_list() == [2, 3]


def test_many_features(tmp_path: Path) -> None:
    path, numbers = tmp_path / "t.svm", range(1, 41)
    rows = svmlight.LINES + 10
    table = pl.select(query_id=pl.int_range(rows), label=1.0).with_columns(
        (pl.col("query_id") * number / 8).alias(f"feature_{number}") for number in numbers
    )
    rk.write_svmlight(table, path, features=table.columns[2:])
    read = rk.scan_svmlight(path, features=numbers)
    assert_frame_equal(read.drop("doc_id").collect(), table)
    assert_frame_equal(read.select("feature_9").collect(), table.select("feature_9"))


@both_ways
def test_same_numbers_through_a_file(tmp_path: Path) -> None:
    table = (
        rk.sample()
        .filter(pl.col("label").is_not_null() & pl.col("score").is_not_null())
        .with_columns(pl.struct("query_id", "model").rank("dense").cast(pl.Int32).alias("query_id"))
    )
    rk.write_svmlight(table, tmp_path / "t.svm")
    read = rk.scan_svmlight(tmp_path / "t.svm", features={1: "score"})
    measures = ["AP", "nDCG@10", "RR"]
    ours = rk.per_query(read, *measures, ties="doc").collect().drop("query_id")
    theirs = rk.per_query(table, *measures, ties="doc").collect().drop("query_id")
    assert_frame_equal(ours, theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_id": ["a", "b"]}, "query column 'query_id' has dtype String.*whole number"),
        ({"query_id": [1, None]}, "column 'query_id' has a null"),
        ({"label": [1, None]}, "column 'label' has a null"),
        ({"score": [None, 0.5]}, "column 'score' has a null"),
        ({"doc_id": ["a", "b\nc"]}, "line break"),
    ],
)
def test_what_the_format_cannot_hold(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = {"query_id": [1, 1], "doc_id": ["a", None], "label": [1, 0], "score": [0.5, 0.2]}
    with pytest.raises(rk.RankEvalError, match=message):
        rk.write_svmlight(table | changes, tmp_path / "t.svm")


def test_from_groups() -> None:
    table = rk.from_groups([1, 0, 1], {"a": [3.0, 2.0, 1.0], "b": [1, 2, 3]}, group=[2, 1])
    assert table.to_dict(as_series=False) == {
        "query_id": [0, 0, 1],
        "label": [1, 0, 1],
        "a": [3.0, 2.0, 1.0],
        "b": [1, 2, 3],
    }
    arrays = rk.from_groups(*(pl.Series(x).to_numpy() for x in ([1, 0], [0.2, 0.1], [2])))
    assert rk.evaluate(arrays, "AP")["AP"].item() == 1.0


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ([2], "sum to 2 rows, but label has 3"),
        ([2, 0, 1], "at least 1"),
        ([1.5, 1.5], "whole numbers"),
        ([], "at least 1"),
        ([None, 3], "whole numbers"),
    ],
)
def test_group_sizes_that_do_not_fit(group: list[Any], message: str) -> None:
    with pytest.raises(rk.RankEvalError, match=message):
        rk.from_groups([1, 0, 1], [1.0, 2.0, 3.0], group)
