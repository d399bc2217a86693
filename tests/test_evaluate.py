"""Means over queries: groups, several scores, weights, nulls, empty tables, and the shape of results."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from oracle import TIES
from strategies import Table, tables
from ways import WAYS, Way, called

NAMES = ["AP", "nDCG@3", "P@2", "AUC", "NumRel"]


def table() -> pl.DataFrame:
    """Two models, three queries; one query has nothing relevant, one model does not answer another."""
    return pl.DataFrame(
        {
            "model": ["m", "m", "m", "m", "m", "n", "n", "n", "n", "n"],
            "query_id": [1, 1, 2, 2, 3, 1, 1, 2, 2, 3],
            "label": [1, 0, 0, 0, 1, 1, 0, 0, 0, 1],
            "score": [0.5, 0.5, 0.7, 0.1, 0.3, 0.1, 0.9, 0.2, 0.2, None],
            "other": [1, 0, 1, 0, 1, 1, 0, 1, 0, 1],
            "weight": [1, 1, 2, 2, 5, 1, 1, 2, 2, 5],
        }
    )


def test_means(way: Way) -> None:
    got = way(table(), lambda f: f.rankeval.evaluate("AP", "RR", by="model"))
    expected = pl.DataFrame(
        {
            "model": ["m", "n"],
            "queries": pl.Series([3, 3], dtype=pl.UInt32),
            "AP": [(0.5 + 0 + 1) / 3, (0.5 + 0 + 0) / 3],
            "RR": [(0.75 + 0 + 1) / 3, (0.5 + 0 + 0) / 3],
        }
    )
    assert_frame_equal(got, expected)


def test_one_row_for_all(way: Way) -> None:
    got = way(table(), lambda f: f.rankeval.evaluate("AP", query=["model", "query_id"]))
    assert got.schema == {"queries": pl.UInt32, "AP": pl.Float64}
    assert got.rows() == [(6, pytest.approx(2 / 6))]


def test_nulls_are_skipped_but_their_queries_counted(way: Way) -> None:
    got = way(table(), lambda f: f.rankeval.evaluate("AP", "AUC", by="model", no_relevant="null"))
    assert got["queries"].to_list() == [3, 3]
    assert got["AP"].to_list() == [pytest.approx(1.5 / 2), pytest.approx(0.5 / 2)]
    # AUC has both sides in query 1 only.
    assert got["AUC"].to_list() == [0.5, 0.0]


def test_mean_of_nothing_is_null(way: Way) -> None:
    frame = table().filter(pl.col("query_id") == 2)
    got = way(frame, lambda f: f.rankeval.evaluate("AP", by="model", no_relevant="null"))
    assert got.rows() == [("m", 1, None), ("n", 1, None)]


@settings(max_examples=25)
@given(
    drawn=tables(),
    ties=st.sampled_from(TIES),
    no_relevant=st.sampled_from(["zero", "null", "one"]),
    way=st.sampled_from(list(WAYS)),
)
def test_means_are_those_of_per_query(drawn: Table, ties: str, no_relevant: str, way: str) -> None:
    options = {"ties": ties, "no_relevant": no_relevant, "query": ["query_id"]}
    frame = drawn.to_frame().with_columns(by=pl.col("query_id").str.len_chars())
    rows = frame.rankeval.per_query(*NAMES, by="by", **options)  # type: ignore[attr-defined]
    got = WAYS[way](frame, lambda f: f.rankeval.evaluate(*NAMES, by="by", **options))
    expected = rows.group_by("by").agg(pl.len().alias("queries"), pl.col(NAMES).mean()).sort("by")
    assert_frame_equal(got, expected, rel_tol=1e-12, abs_tol=1e-12)
    got = WAYS[way](frame, lambda f: f.rankeval.evaluate(*NAMES, **options))
    expected = rows.select(pl.len().alias("queries"), pl.col(NAMES).mean())
    assert_frame_equal(got, expected, rel_tol=1e-12, abs_tol=1e-12)


# --- groups and scores ----------------------------------------------------------------------------


def test_a_query_is_ranked_in_each_group_on_its_own(way: Way) -> None:
    got = way(table(), lambda f: f.rankeval.per_query("AP", "NumRet", by="model"))
    assert got.columns == ["model", "query_id", "AP", "NumRet"]
    for model in ("m", "n"):
        alone = table().filter(pl.col("model") == model)
        expected = way(alone, lambda f: f.rankeval.per_query("AP", "NumRet"))
        assert_frame_equal(got.filter(pl.col("model") == model).drop("model"), expected)


def test_several_groups_are_sorted(way: Way) -> None:
    frame = pl.concat(
        table().with_columns(pl.lit(day, dtype=pl.Int8).alias("day")) for day in (2, 1)
    )
    got = way(frame, lambda f: f.rankeval.evaluate("AP", by=["day", "model"]))
    assert got.columns == ["day", "model", "queries", "AP"]
    assert got.schema["day"] == pl.Int8
    assert got.select("day", "model").rows() == [(1, "m"), (1, "n"), (2, "m"), (2, "n")]


def test_several_scores(way: Way) -> None:
    scores = ["score", "other"]
    got = way(table(), lambda f: f.rankeval.evaluate("AP", "P@1", by="model", score=scores))
    assert got.columns == ["model", "score", "queries", "AP", "P@1"]
    assert got.select("model", "score").rows() == [
        ("m", "other"),
        ("m", "score"),
        ("n", "other"),
        ("n", "score"),
    ]
    for name in scores:
        alone = way(table(), called("evaluate", "AP", "P@1", by="model", score=name))
        assert_frame_equal(got.filter(pl.col("score") == name).drop("score"), alone)


def test_several_scores_of_every_query(way: Way) -> None:
    scores = ["score", "other"]
    got = way(table(), lambda f: f.rankeval.per_query("AP", by="model", score=scores))
    assert got.columns == ["model", "score", "query_id", "AP"]
    assert got.height == 12
    keys = got.select("model", "score", "query_id").rows()
    assert keys == sorted(keys)


def test_one_score_in_a_list_is_one_score(way: Way) -> None:
    got = way(table(), lambda f: f.rankeval.evaluate("AP", by="model", score=["other"]))
    assert got.columns == ["model", "queries", "AP"]


def test_columns_by_other_names(way: Way) -> None:
    names = {"query_id": "q", "label": "grade", "score": "s"}
    got = way(
        table().rename(names),
        lambda f: f.rankeval.per_query("AP", query="q", label="grade", score="s", by="model"),
    )
    expected = way(table(), lambda f: f.rankeval.per_query("AP", by="model"))
    assert_frame_equal(got.rename({"q": "query_id"}), expected)


def test_the_label_may_be_the_score(way: Way) -> None:
    options = {"score": "label", "by": "model", "no_relevant": "one"}
    got = way(table(), lambda f: f.rankeval.evaluate("AP", "nDCG", "RR", **options))
    assert got.rows() == [("m", 3, 1.0, 1.0, 1.0), ("n", 3, 1.0, 1.0, 1.0)]


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_weighted_mean(dtype: Any, way: Way) -> None:
    frame = table().with_columns(pl.col("weight").cast(dtype))
    got = way(frame, lambda f: f.rankeval.evaluate("AP", by="model", weight="weight"))
    assert got.columns == ["model", "queries", "AP"]
    assert got["AP"].to_list() == pytest.approx([(0.5 * 1 + 0 * 2 + 1 * 5) / 8, 0.5 / 8])


def test_weights_of_nulls_do_not_count(way: Way) -> None:
    options = {"by": "model", "weight": "weight", "no_relevant": "null"}
    got = way(table(), lambda f: f.rankeval.evaluate("AP", **options))
    assert got["AP"].to_list() == pytest.approx([(0.5 * 1 + 1 * 5) / 6, 0.5 / 6])
    assert got["queries"].to_list() == [3, 3]


def test_equal_weights_change_nothing(way: Way) -> None:
    frame = table().with_columns(w=0.25)
    got = way(frame, lambda f: f.rankeval.evaluate(*NAMES, by="model", weight="w"))
    assert_frame_equal(got, way(frame, lambda f: f.rankeval.evaluate(*NAMES, by="model")))


def test_no_weight_at_all(way: Way) -> None:
    got = way(
        table().with_columns(w=0), lambda f: f.rankeval.evaluate("AP", by="model", weight="w")
    )
    assert got["AP"].to_list() == [None, None]


def test_weights_with_several_scores_and_without_groups(way: Way) -> None:
    frame = table().filter(pl.col("model") == "m")
    got = way(frame, lambda f: f.rankeval.evaluate("AP", score=["score", "other"], weight="weight"))
    assert got.rows() == [("other", 3, pytest.approx(6 / 8)), ("score", 3, pytest.approx(5.5 / 8))]
    got = way(frame, lambda f: f.rankeval.evaluate("AP", weight="weight"))
    assert got.rows() == [(3, pytest.approx(5.5 / 8))]


def test_large_integer_weights_do_not_overflow(way: Way) -> None:
    frame = table().with_columns(w=pl.lit(2**62))
    got = way(frame, lambda f: f.rankeval.evaluate("AP", "NumRet", by="model", weight="w"))
    assert got["AP"].to_list() == pytest.approx([1.5 / 3, 0.5 / 3])
    assert got["NumRet"].to_list() == pytest.approx([5 / 3, 4 / 3])


# --- empty tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", TIES)
def test_no_rows(ties: str, way: Way) -> None:
    frame = table().clear().with_columns(pl.lit(None, dtype=pl.String).alias("doc_id"))
    per_query = way(frame, lambda f: f.rankeval.per_query(*NAMES, "ERR", "RR", ties=ties))
    assert per_query.height == 0
    assert per_query.schema == {
        "query_id": pl.Int64,
        **dict.fromkeys([*NAMES, "ERR", "RR"], pl.Float64),
    }
    whole = way(frame, lambda f: f.rankeval.evaluate(*NAMES, ties=ties))
    assert whole.rows() == [(0, *[None] * len(NAMES))]
    assert whole.schema == {"queries": pl.UInt32, **dict.fromkeys(NAMES, pl.Float64)}
    groups = way(frame, lambda f: f.rankeval.evaluate(*NAMES, ties=ties, by="model"))
    assert groups.height == 0
    assert groups.schema == {
        "model": pl.String,
        "queries": pl.UInt32,
        **dict.fromkeys(NAMES, pl.Float64),
    }
    weighted = way(frame, lambda f: f.rankeval.evaluate("AP", ties=ties, weight="weight"))
    assert weighted.rows() == [(0, None)]


def test_no_rows_of_text_keys(way: Way) -> None:
    frame = table().clear().with_columns(pl.col("query_id").cast(pl.String))
    assert way(frame, lambda f: f.rankeval.per_query("AP")).schema == {
        "query_id": pl.String,
        "AP": pl.Float64,
    }


# --- shape ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"by": ["model"]}, {"score": ["other", "score"]}])
def test_schema_is_known_before_the_plan_runs(options: dict[str, Any]) -> None:
    plans: list[pl.LazyFrame] = [
        rk.per_query(table().lazy(), *NAMES, **({"by": "model"} | options)),
        rk.evaluate(table().lazy(), *NAMES, query=["query_id", "weight"], **options),
        rk.evaluate(table().lazy(), *NAMES, query=["query_id", "other"], weight="weight"),
    ]
    for plan in plans:
        assert plan.collect_schema() == plan.collect().schema


def test_measures_in_the_order_given_each_once(way: Way) -> None:
    asked = ["RR", "map", rk.Measure("nDCG", 10), "AP", "ndcg_cut_10", "P_2"]
    got = way(table(), lambda f: f.rankeval.per_query(*asked, by="model"))
    assert got.columns == ["model", "query_id", "RR", "AP", "nDCG@10", "P@2"]


def test_function_and_namespace_are_one(way: Way) -> None:
    function = way(table(), lambda f: rk.evaluate(f, *NAMES, by="model"))
    namespace = way(table(), lambda f: f.rankeval.evaluate(*NAMES, by="model"))
    piped = way(table(), lambda f: f.pipe(rk.evaluate, *NAMES, by="model"))
    assert_frame_equal(function, namespace)
    assert_frame_equal(function, piped)


def test_input_is_left_alone(way: Way) -> None:
    frame, before = table(), table().clone()
    way(frame, lambda f: f.rankeval.evaluate(*NAMES, by="model"))
    way(frame, lambda f: f.rankeval.per_query(*NAMES, by="model", ties="best"))
    assert_frame_equal(frame, before)
    assert frame.flags == before.flags


def test_nothing_runs_before_collect() -> None:
    runs = 0

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        nonlocal runs
        runs += 1
        frame = table().lazy() if predicate is None else table().lazy().filter(predicate)
        frame = frame if columns is None else frame.select(columns)
        yield (frame if rows is None else frame.head(rows)).collect()

    lf = register_io_source(source, schema=table().schema)
    plans: list[pl.LazyFrame] = [
        rk.per_query(lf, *NAMES, "ERR", by="model"),
        rk.per_query(lf, *NAMES, by="model", ties="best", judged_only=True),
        rk.evaluate(lf, *NAMES, by="model", weight="weight"),
        rk.evaluate(lf, *NAMES, by="model", score=["score", "other"]),
        rk.tie_blocks(lf, by="model"),
        rk.check(lf, by="model"),
    ]
    assert runs == 0
    for plan in plans:
        plan.collect_schema()
    assert runs == 0
    for plan in plans:
        before = runs
        plan.collect()
        assert runs > before


def test_a_frame_is_freed_with_its_last_name() -> None:
    frame = table()
    frame.rankeval.evaluate("AP", by="model")  # type: ignore[attr-defined]
    ghost = weakref.ref(frame)
    gc.disable()
    try:
        del frame
        assert ghost() is None
    finally:
        gc.enable()
