"""The expression functions against the oracle, in `group_by().agg`, `over` and `select`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_rankeval as rk
from oracle import TIES
from panel import Asked, asked, by_query, exact
from strategies import Table, tables
from ways import WAYS, Way, differences

FUNCTIONS: dict[str, Callable[..., pl.Expr]] = {
    "AP": rk.average_precision,
    "RR": rk.reciprocal_rank,
    "P": rk.precision,
    "R": rk.recall,
    "F": rk.f_score,
    "SetP": rk.precision,
    "SetR": rk.recall,
    "SetF": rk.f_score,
    "Rprec": rk.r_precision,
    "Success": rk.success,
    "CG": rk.cg,
    "DCG": rk.dcg,
    "nDCG": rk.ndcg,
    "RBP": rk.rbp,
    "ERR": rk.err,
    "AUC": rk.auc,
}
WAY_NAMES = st.sampled_from(list(WAYS))
STRICT = ("best", "worst", "order", "doc")


def expression(measure: Asked, options: dict[str, Any], *, method: bool = False) -> pl.Expr:
    """The measure as an expression, named as the measure is."""
    function = FUNCTIONS[measure.name]
    doc = "doc_id" if options["ties"] == "doc" else None
    if method:
        namespace: Any = pl.col("label").rankeval  # type: ignore[attr-defined]
        value = getattr(namespace, function.__name__)("score", doc=doc, **options, **measure.params)
        assert isinstance(value, pl.Expr)
    else:
        value = function("label", pl.col("score"), doc=doc, **options, **measure.params)
    return value.alias(str(measure))


def grouped(way: Way, frame: pl.DataFrame, values: list[pl.Expr]) -> dict[Any, Any]:
    """Values by query, from an aggregation."""
    return by_query(way(frame, lambda f: f.group_by("query_id").agg(values)))


def windowed(way: Way, frame: pl.DataFrame, values: list[pl.Expr]) -> dict[Any, Any]:
    """Values by query, from windows: the same in all rows of a query."""
    result = way(
        frame, lambda f: f.select("query_id", *(v.over("query_id") for v in values)).unique()
    )
    return by_query(result)


def selected(way: Way, frame: pl.DataFrame, values: list[pl.Expr]) -> dict[Any, Any]:
    """Values by query, from a table for each."""
    results = {}
    for key, rows in frame.group_by("query_id"):
        result = way(rows, lambda f: f.select(values))
        assert result.height == 1
        results[key[0]] = result.row(0)
    return results


CONTEXTS = {"agg": grouped, "over": windowed, "select": selected}


def agree(
    table: Table, measures: list[Asked], options: dict[str, Any], way: str, *, method: bool = False
) -> None:
    """All contexts give the values of the oracle."""
    unique = list({str(m): m for m in measures}.values())
    names = [str(m) for m in unique]
    values = [expression(m, options, method=method) for m in unique]
    expected = exact(table, unique, **options)
    for context, collect in CONTEXTS.items():
        got = collect(WAYS[way], table.to_frame(), values)
        assert not differences(got, expected, names), (context, way)


@st.composite
def option_sets(draw: st.DrawFn, ties: tuple[str, ...] = TIES) -> dict[str, Any]:
    """Shared keywords."""
    return {
        "ties": draw(st.sampled_from(ties)),
        "no_relevant": draw(st.sampled_from(["zero", "null", "one"])),
        "judged_only": draw(st.booleans()),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=8)
@given(table=tables(max_queries=3), data=st.data(), method=st.booleans(), way=WAY_NAMES)
def test_alone(name: str, table: Table, data: st.DataObject, method: bool, way: str) -> None:
    options = data.draw(option_sets(STRICT if name == "ERR" else TIES))
    agree(table, [data.draw(asked([name]))], options, way, method=method)


@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=10)
@given(table=tables(max_queries=3), data=st.data(), way=WAY_NAMES)
def test_a_few_together(ties: str, table: Table, data: st.DataObject, way: str) -> None:
    names = [name for name in FUNCTIONS if name != "ERR" or ties in STRICT]
    measures = data.draw(st.lists(asked(names), min_size=2, max_size=6))
    agree(table, measures, data.draw(option_sets((ties,))), way)


@settings(max_examples=15)
@given(table=tables(max_queries=3), data=st.data(), way=WAY_NAMES)
def test_policies_side_by_side(table: Table, data: st.DataObject, way: str) -> None:
    # Polars computes common parts once: they must not be mixed up between policies.
    measure = data.draw(asked([name for name in FUNCTIONS if name != "ERR"]))
    sets = [data.draw(option_sets((ties,))) for ties in TIES]
    values = [expression(measure, s).alias(f"{s['ties']}") for s in sets]
    expected: dict[Any, list[Any]] = {
        query: [value for part in parts for value in part]
        for query, *parts in (
            (query, *(exact(table, [measure], **s)[query] for s in sets))
            for query in table.by_query()
        )
    }
    for context, collect in CONTEXTS.items():
        got = collect(WAYS[way], table.to_frame(), values)
        assert not differences(got, expected, TIES), (context, way)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "ERR"])
def test_empty_table(name: str, way: Way) -> None:
    frame = pl.DataFrame(schema={"query_id": pl.Int64, "label": pl.Int8, "score": pl.Float64})
    params = {"k": 3} if name in ("P", "F", "R") else {}
    options = {"ties": "block", "no_relevant": "one", "judged_only": False}
    value = expression(Asked(name, params), options)
    one_row = way(frame, lambda f: f.select(value))
    expected = {"AUC": None}.get(name, 0.0 if name in ("P", "SetP", "CG", "DCG") else 1.0)
    assert one_row.rows() == [(expected,)]
    assert way(frame, lambda f: f.group_by("query_id").agg(value)).height == 0
    assert way(frame, lambda f: f.with_columns(value.over("query_id"))).height == 0


def test_type_and_name(way: Way) -> None:
    frame = pl.DataFrame({"query_id": [1, 1], "rel": [True, False], "s": [1, 2]})
    result = way(
        frame,
        lambda f: f.select(
            rk.reciprocal_rank("rel", "s"),
            rk.average_precision(pl.col("rel") & True, pl.col("s") * 2.0).alias("ap"),
            (rk.ndcg("rel", "s") * 2).alias("twice"),
        ),
    )
    assert result.schema == {"rel": pl.Float64, "ap": pl.Float64, "twice": pl.Float64}
    assert result.row(0)[:2] == (0.5, 0.5)


def test_label_and_score_may_be_expressions(way: Way) -> None:
    frame = pl.DataFrame({"q": [1, 1, 1], "grade": [0, 3, 1], "margin": [0.1, 0.3, 0.2]})
    result = way(
        frame,
        lambda f: f.group_by("q").agg(
            ap=rk.average_precision(pl.col("grade") > 1, -pl.col("margin")),
            mixed=rk.average_precision("grade", "margin") + rk.reciprocal_rank("grade", "margin"),
        ),
    )
    assert result.row(0) == (1, 1 / 3, 2.0)


@pytest.mark.parametrize("ties", ["block", "expected"])
def test_tied_err_is_left_to_per_query(ties: Any) -> None:
    with pytest.raises(rk.RankEvalError, match="per_query"):
        rk.err("label", "score", ties=ties)
    with pytest.raises(rk.RankEvalError, match="per_query"):
        rk.err("label", "score")  # block is the default


def test_order_by_document_needs_the_document() -> None:
    with pytest.raises(rk.RankEvalError, match="doc="):
        rk.average_precision("label", "score", ties="doc")
