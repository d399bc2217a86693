"""Every refusal: its class, and a message that names the column, the rows, a query and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_rankeval as rk
from ways import Way, called, eager

NAN, INF = float("nan"), float("inf")


def good(**changed: Any) -> pl.DataFrame:
    """A table without fault, but for the columns given."""
    columns: dict[str, Any] = {
        "query_id": ["a", "a", "b", "b", "c"],
        "doc_id": ["x", "y", "x", "y", "x"],
        "label": [1.0, 0.0, 2.0, None, 0.0],
        "score": [0.3, 0.2, 0.9, 0.1, None],
        "user": [1, 1, 1, 1, 2],
    }
    return pl.DataFrame(columns | changed)


#: What goes wrong in the values: table, measure, options, what the message says.
VALUES: dict[str, tuple[pl.DataFrame, str, dict[str, Any], list[str]]] = {
    "score is NaN": (
        good(score=[0.3, 0.2, NAN, NAN, None]),
        "AP",
        {},
        ["score column 'score' is NaN in 2 rows", "in query 'b'", "use null"],
    ),
    "label is NaN": (
        good(label=[1.0, 0.0, 2.0, 1.0, NAN]),
        "AP",
        {},
        ["label column 'label' is NaN or infinite in 1 row,", "in query 'c'", "use null"],
    ),
    "label is infinite": (
        good(label=[1.0, -INF, 2.0, 1.0, 0.0]),
        "NumRet",
        {},
        ["label column 'label' is NaN or infinite in 1 row,", "in query 'a'"],
    ),
    "label above max_label": (
        good(label=[0, 1, 5, 6, None]),
        "ERR",
        {},
        ["label column 'label' is above max_label=4 in 2 rows", "in query 'b'", "max_label=5"],
    ),
    "label above the least max_label": (
        good(label=[0, 1, 3, 1, None]),
        "ERR(max_label=2)",
        {},
        ["above max_label=2 in 1 row,", "in query 'b'"],
    ),
    "query is null": (
        good(query_id=["a", None, "b", None, "c"]),
        "AP",
        {},
        ["query column 'query_id' is null in 2 rows", "fill the nulls"],
    ),
    "query of integers is null": (
        good(query_id=[1, None, 2, 2, 2]),
        "AP",
        {},
        ["query column 'query_id' is null in 1 row:"],
    ),
    "one of two query columns is null": (
        good(user=[1, 1, None, 1, 2]),
        "AP",
        {"query": ["query_id", "user"]},
        ["query column 'user' is null in 1 row:"],
    ),
    "several query columns": (
        good(score=[0.3, 0.2, 0.9, 0.1, NAN]),
        "AP",
        {"query": ["query_id", "user"]},
        ["in query query_id='c', user=2"],
    ),
    "groups": (
        good(score=[0.3, 0.2, 0.9, 0.1, NAN]),
        "AP",
        {"by": "user"},
        ["in query user=2, query_id='c'"],
    ),
    "document is null": (
        good(doc_id=["x", None, "x", "y", "x"]),
        "AP",
        {"ties": "doc"},
        ["document column 'doc_id' is null in 1 row,", "in query 'a'", "fill the nulls"],
    ),
    "document twice": (
        good(doc_id=["x", "y", "z", "z", "x"]),
        "AP",
        {"ties": "doc"},
        ["1 pair of query and document in 2 rows of column 'doc_id'", "'z' of query 'b'", "once"],
    ),
    "nothing relevant": (
        good(),
        "AP",
        {"no_relevant": "error"},
        ["AP is undefined for 1 query without relevant rows", "query 'c'", "no_relevant='zero'"],
    ),
    "nothing relevant at a level": (
        good(),
        "P(rel=2)@1 AP(rel=2)",
        {"no_relevant": "error"},
        ["AP(rel=2) is undefined for 2 queries"],
    ),
    "no gain": (
        good(),
        "nDCG@5",
        {"no_relevant": "error"},
        ["nDCG@5 is undefined for 1 query", "query 'c'"],
    ),
}
NO_WEIGHT = "weight column 'w' is null, negative or not finite in {}, for example in query 'b'"
TWO_WEIGHTS = (
    "weight column 'w' is not the same in all rows of the query in {}, for example in query"
)
WEIGHTS: dict[str, tuple[list[Any], str]] = {
    "null": ([1.0, 1.0, None, 2.0, 1.0], NO_WEIGHT.format("1 row")),
    "negative": ([1.0, 1.0, -2.0, -2.0, 1.0], NO_WEIGHT.format("2 rows")),
    "infinite": ([1.0, 1.0, INF, INF, 1.0], NO_WEIGHT.format("2 rows")),
    "NaN": ([1.0, 1.0, NAN, NAN, 1.0], NO_WEIGHT.format("2 rows")),
    "different": ([1.0, 1.0, 2.0, 3.0, 1.0], TWO_WEIGHTS.format("2 rows") + " 'b'"),
}


def says(error: pytest.ExceptionInfo[BaseException], parts: list[str]) -> None:
    """The message has all the parts, and nothing was wrapped around it."""
    assert error.type is rk.RankEvalError
    assert isinstance(error.value, ValueError)
    missing = [part for part in parts if part not in str(error.value)]
    assert not missing, str(error.value)


@pytest.mark.parametrize("case", VALUES)
@pytest.mark.parametrize("function", [rk.per_query, rk.evaluate])
def test_values(case: str, function: Callable[..., Any], way: Way) -> None:
    frame, measures, options, parts = VALUES[case]
    with pytest.raises(rk.RankEvalError) as error:
        way(frame, lambda f: function(f, *measures.split(), **options))
    says(error, parts)


@pytest.mark.parametrize("case", VALUES)
def test_values_are_looked_at_when_the_plan_runs(case: str) -> None:
    frame, measures, options, parts = VALUES[case]
    plan = rk.per_query(frame.lazy(), *measures.split(), **options)
    with pytest.raises(rk.RankEvalError) as error:
        plan.select(pl.last()).collect()
    says(error, parts)


def test_without_fault(way: Way) -> None:
    names = ["AP", "P(rel=2)@1", "nDCG@5", "ERR"]
    for ties in ("block", "doc"):
        for keys in ({"query": ["query_id", "user"]}, {"by": "user"}):
            assert way(good(), called("per_query", *names, ties=ties, **keys)).height == 3


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(case: str, way: Way) -> None:
    weights, message = WEIGHTS[case]
    with pytest.raises(rk.RankEvalError) as error:
        way(good(w=weights), lambda f: f.rankeval.evaluate("AP", weight="w"))
    says(error, [message])


def test_weight_of_text(way: Way) -> None:
    with pytest.raises(rk.RankEvalError) as error:
        way(good(), lambda f: f.rankeval.evaluate("AP", weight="doc_id"))
    says(error, ["weight column 'doc_id' has dtype String"])


def test_example_is_an_offending_query(way: Way) -> None:
    frame = pl.DataFrame({"query_id": range(1000), "label": 1, "score": 0.5}).with_columns(
        score=pl.when(pl.col("query_id") == 777).then(NAN).otherwise("score")
    )
    with pytest.raises(rk.RankEvalError, match=r"in 1 row, for example in query 777:"):
        way(frame, lambda f: f.rankeval.per_query("AP"))


def test_first_fault_of_several_score_columns(way: Way) -> None:
    frame = good(other=[NAN, 0.2, 0.9, 0.1, None])
    with pytest.raises(rk.RankEvalError, match="score column 'other' is NaN in 1 row"):
        way(frame, lambda f: f.rankeval.evaluate("AP", score=["score", "other"]))


# --- the schema, as soon as the function is called ------------------------------------------------

SCHEMA: dict[str, tuple[dict[str, Any], list[str]]] = {
    "label of text": (
        {"label": "doc_id"},
        ["label column 'doc_id' has dtype String", "number or a Boolean", "pl.col('doc_id').cast"],
    ),
    "score of text": ({"score": "doc_id"}, ["score column 'doc_id' has dtype String", "cast it"]),
    "score of Booleans": ({"score": "flag"}, ["score column 'flag' has dtype Boolean"]),
    "score of dates": ({"score": "day"}, ["score column 'day' has dtype Date"]),
    "score of lists": ({"score": "list"}, ["score column 'list' has dtype List"]),
    "label of dates": ({"label": "day"}, ["label column 'day' has dtype Date"]),
    "second score of text": ({"score": ["score", "doc_id"]}, ["score column 'doc_id'"]),
    "query named twice": (
        {"query": ["query_id", "query_id"]},
        ["column 'query_id' is named twice among query and by"],
    ),
    "query and group": ({"by": "query_id"}, ["column 'query_id' is named twice"]),
    "no score": ({"score": []}, ["name at least one score column"]),
    "unknown ties": (
        {"ties": "blocks"},
        ["ties='blocks' is not known", "'expected'", "did you mean 'block'?"],
    ),
    "unknown no_relevant": (
        {"no_relevant": "nul"},
        ["no_relevant='nul' is not known", "'error'", "did you mean 'null'?"],
    ),
}


@pytest.mark.parametrize("case", SCHEMA)
@pytest.mark.parametrize("function", [rk.per_query, rk.evaluate])
@pytest.mark.parametrize("lazy", [False, True])
def test_schema(case: str, function: Callable[..., Any], lazy: bool) -> None:
    options, parts = SCHEMA[case]
    frame = good(flag=True).with_columns(
        day=pl.date(2026, 1, 1), list=pl.concat_list("user", "user")
    )
    with pytest.raises(rk.RankEvalError) as error:
        function(frame.lazy() if lazy else frame, "AP", **options)
    says(error, parts)


@pytest.mark.parametrize("function", [rk.per_query, rk.evaluate])
def test_column_of_the_result(function: Callable[..., Any]) -> None:
    with pytest.raises(rk.RankEvalError) as error:
        function(good().rename({"user": "AP"}), "AP", by="AP")
    says(error, ["the result has a column 'AP' of its own", "rename"])
    with pytest.raises(rk.RankEvalError) as error:
        function(
            good(t=1).rename({"user": "score", "score": "s"}), "AP", by="score", score=["s", "t"]
        )
    says(error, ["the result has a column 'score' of its own"])


def test_column_queries_of_the_result() -> None:
    with pytest.raises(rk.RankEvalError) as error:
        rk.evaluate(good().rename({"user": "queries"}), "AP", by="queries")
    says(error, ["the result has a column 'queries' of its own"])


MISSING: dict[str, dict[str, Any]] = {
    "qury_id": {"query": "qury_id"},
    "labels": {"label": "labels"},
    "scores": {"score": ["score", "scores"]},
    "users": {"by": ["users"]},
    "doc": {"doc": "doc", "ties": "doc"},
}


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("lazy", [False, True])
def test_missing_column(name: str, lazy: bool) -> None:
    frame: Any = good().lazy() if lazy else good()
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as error:
        rk.per_query(frame, "AP", **MISSING[name])
    near = {"qury_id": "query_id", "labels": "label", "scores": "score", "users": "user"}
    assert f"column {name!r} not found" in str(error.value)
    assert "'query_id', 'doc_id', 'label', 'score', 'user'" in str(error.value)
    assert f"did you mean {near.get(name, 'doc_id')!r}?" in str(error.value)


def test_missing_weight() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="'weight' not found"):
        rk.evaluate(good(), "AP", weight="weight")


def test_document_column_is_not_missed_where_it_is_not_read() -> None:
    assert rk.per_query(good().drop("doc_id"), "AP").height == 3
    assert rk.per_query(good(), "AP", doc="nowhere").height == 3


# --- measures -------------------------------------------------------------------------------------


def test_no_measure() -> None:
    with pytest.raises(rk.RankEvalError, match="at least one measure"):
        rk.per_query(good())


def test_all_bad_measures_at_once() -> None:
    with pytest.raises(rk.RankEvalError) as error:
        rk.per_query(good(), "nDGC@10", "AP", "presicion@5", "RR@0", "P(relevance=2)@5")
    says(error, ["4 measures cannot be read", "'nDGC'; did you mean nDCG", "'presicion'; did you"])
    says(error, ["did you mean P ", "'RR@0'", "at least 1", "'relevance'", "rel"])
    assert "'AP'" not in str(error.value)


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [7, None, [], object(), ["a.parquet", 3], {1, 2}])
def test_unknown_source(source: Any) -> None:
    with pytest.raises(rk.RankEvalError, match=f"table of {type(source).__name__}: pass a LazyFr"):
        rk.scan(source)


@pytest.mark.parametrize("path", ["scored.txt", Path("scored"), "scored.gz", "scored.parquet.bak"])
def test_unknown_suffix(path: Any) -> None:
    with pytest.raises(rk.RankEvalError, match=re.escape(repr(str(path))) + ".*parquet"):
        rk.scan(path)


def test_files_of_two_kinds() -> None:
    with pytest.raises(rk.RankEvalError, match="all files of one source must be of one kind"):
        rk.scan(["a.parquet", "b.csv"])


# --- expressions ----------------------------------------------------------------------------------

EXPRESSIONS: dict[str, tuple[pl.DataFrame, dict[str, Any], list[str]]] = {
    "score is NaN": (
        good(score=[NAN, 0.2, NAN, 0.1, None]),
        {},
        ["a score of AP", "column 'score' is NaN in 2 rows", "use null"],
    ),
    "label is infinite": (
        good(label=[1.0, 2.0, INF, 0.0, None]),
        {},
        ["a label of AP", "column 'label' is NaN or infinite in 1 row"],
    ),
    "label is NaN": (
        good(label=[1.0, 2.0, NAN, 0.0, None]),
        {},
        ["column 'label' is NaN or infinite in 1 row"],
    ),
    "score of text": (good(score=["1"] * 5), {}, ["column 'score' has dtype String"]),
    "label of text": (good(label=["1"] * 5), {}, ["column 'label' has dtype String"]),
    "nothing relevant": (
        good(),
        {"no_relevant": "error"},
        ["AP is undefined for 1 query without relevant rows", "no_relevant='zero'"],
    ),
}


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_expressions(case: str, way: Way) -> None:
    frame, options, parts = EXPRESSIONS[case]
    value = rk.average_precision("label", "score", **options)
    with pytest.raises(rk.RankEvalError) as error:
        way(frame, lambda f: f.group_by("query_id").agg(value))
    says(error, parts)
    with pytest.raises(rk.RankEvalError):
        way(frame, lambda f: f.with_columns(ap=value.over("query_id")))
    with pytest.raises(rk.RankEvalError):
        way(frame.filter(pl.col("query_id").is_in(["b", "c"])), lambda f: _selected(f, value))


def _selected(frame: Any, value: pl.Expr) -> Any:
    """The fault is in query a, b or c: one of these selections has it."""
    parts = [frame.filter(pl.col("query_id") == query).select(value) for query in ("b", "c")]
    return pl.concat([frame.select(value), *parts])


def test_label_above_max_label_in_an_expression(way: Way) -> None:
    value = rk.err("label", "score", ties="best", max_label=1)
    with pytest.raises(rk.RankEvalError) as error:
        way(good(), lambda f: f.group_by("query_id").agg(value))
    says(error, ["column 'label' is above max_label=1 in 1 row"])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"ties": "blok"}, "did you mean 'block'?"),
        ({"no_relevant": "zeroes"}, "did you mean 'zero'?"),
        ({"k": 0}, "at least 1"),
        ({"k": 2.5}, "whole number"),
        ({"rel": 0}, "rel must be a number above 0"),
    ],
)
def test_parameters_of_expressions(options: dict[str, Any], part: str) -> None:
    with pytest.raises(rk.RankEvalError) as error:
        rk.average_precision("label", "score", **options)
    says(error, [part])


def test_unknown_keyword_of_an_expression() -> None:
    unknown: Any = {"contiguous": True}
    with pytest.raises(TypeError, match="AP has no keyword 'contiguous'"):
        rk.average_precision("label", "score", **unknown)


def test_missing_column_of_an_expression(way: Way) -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="labl"):
        way(good(), lambda f: f.select(rk.average_precision("labl", "score")))


def test_eager_raises_at_once() -> None:
    frame, measures, options, _ = VALUES["score is NaN"]
    with pytest.raises(rk.RankEvalError):
        eager(frame, lambda f: f.rankeval.per_query(measures, **options))
