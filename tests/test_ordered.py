"""Rows in memory that stand in order are not sorted again, and evaluate to what the lazy plan gives."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from polars_rankeval import ordered
from polars_rankeval._typing import Ties
from polars_rankeval.ranking import Rows
from test_packed import MEASURES, SHAPES, some_null

IN_ORDER = {
    name: table.sort("query_id", "score", descending=[False, True], nulls_last=True)
    for name, (table, _) in SHAPES.items()
    if name not in ("strings", "unsigned queries")
}


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each table was in order."""
    seen: list[bool] = []
    original = ordered.in_order

    def in_order(rows: Rows, query: pl.Expr | None) -> Rows | None:
        result = original(rows, query)
        seen.append(result is not None)
        return result

    monkeypatch.setattr(ordered, "in_order", in_order)
    return seen


def same(table: pl.DataFrame, **options: object) -> None:
    got = rk.per_query(table, *MEASURES, **options)  # type: ignore[call-overload]
    expected = rk.per_query(table.lazy(), *MEASURES, **options).collect()  # type: ignore[call-overload]
    assert_frame_equal(got, expected, abs_tol=1e-12)


@pytest.mark.parametrize("ties", ["block", "expected", "best", "worst", "order"])
@pytest.mark.parametrize("shape", IN_ORDER)
def test_rows_in_order_give_the_same_numbers(shape: str, ties: Ties, orders: list[bool]) -> None:
    same(IN_ORDER[shape], ties=ties)
    assert orders == [True]


@pytest.mark.parametrize("shape", ["unretrieved rows", "negative labels", "float32"])
def test_rows_that_are_not_retrieved_may_stand_anywhere(shape: str, orders: list[bool]) -> None:
    table = IN_ORDER[shape].with_columns(some_null("score"))
    same(pl.concat([table.filter(pl.col("score").is_null()), table.drop_nulls("score")]))
    same(pl.concat([table.drop_nulls("score"), table.filter(pl.col("score").is_null())]))
    assert orders == [True, True]


def test_queries_that_retrieved_nothing_are_kept(orders: list[bool]) -> None:
    table = IN_ORDER["many relevant"].with_columns(
        pl.when(pl.col("query_id").is_in([0, 3, 4, 19]))
        .then(None)
        .otherwise("score")
        .alias("score")
    )
    same(table)
    same(table.reverse().sort("query_id", "score", descending=[False, True], nulls_last=True))
    same(table.with_columns(score=pl.lit(None, dtype=pl.Float64)))
    assert orders == [True, True, True]


def test_documents_break_ties_of_rows_in_order(orders: list[bool]) -> None:
    table = IN_ORDER["unretrieved rows"].with_columns(
        doc_id=pl.format("d{}", pl.col("n") * 17 % 300)
    )
    same(table, ties="doc")
    same(table, ties="doc", judged_only=True)
    assert orders[0]


def test_one_ranking_in_order(orders: list[bool]) -> None:
    same(IN_ORDER["unretrieved rows"].sort("score", descending=True), query=None)
    assert orders == [True]


@pytest.mark.parametrize("at", [3, 256])
def test_one_row_out_of_order_is_seen(at: int, orders: list[bool]) -> None:
    table = IN_ORDER["many relevant"].with_columns(
        score=pl.when(pl.int_range(pl.len()) == at).then(99.0).otherwise("score")
    )
    assert table["query_id"][at] == table["query_id"][at - 1]
    same(table)
    assert orders == [False]


def test_zeros_of_both_signs_tie(orders: list[bool]) -> None:
    table = pl.DataFrame(
        {"query_id": 1, "label": [0, 1, 0, 1], "score": [1.0, -0.0, 0.0, -0.0]},
        schema_overrides={"query_id": pl.Int64},
    )
    same(table)
    assert orders == [True]


@pytest.mark.parametrize(
    "bad", [{"score": float("nan")}, {"query_id": None}, {"label": float("inf")}]
)
def test_what_no_table_may_have_is_refused(bad: dict[str, float | None]) -> None:
    table = IN_ORDER["whole float labels"].with_columns(
        pl.when(pl.int_range(pl.len()) == 250).then(pl.lit(value)).otherwise(name).alias(name)
        for name, value in bad.items()
    )
    with pytest.raises(rk.RankEvalError, match=next(iter(bad))):
        rk.per_query(table, "AP")
