"""Rows in memory are packed into one integer if they fit, and evaluate to what the lazy plan gives either way."""

from __future__ import annotations

import random
from datetime import date, timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from polars_rankeval import packed
from polars_rankeval.ranking import Rows

MEASURES = ("AP", "RR", "nDCG@3", "P(rel=2)@2", "R@5", "NumRet", "NumRel", "Rprec", "Judged@3")


def frame(rows: int = 300, queries: int = 20, relevant: float = 0.5, seed: int = 0) -> pl.DataFrame:
    random_ = random.Random(seed)
    return pl.DataFrame(
        {
            "query_id": [random_.randrange(queries) for _ in range(rows)],
            "label": [
                random_.choice([1, 2, 3]) if random_.random() < relevant else 0 for _ in range(rows)
            ],
            "score": [random_.randrange(-8, 8) / 2 for _ in range(rows)],
            "n": range(rows),
        }
    )


def some_null(column: str) -> pl.Expr:
    return pl.when(pl.col("n") % 7 != 3).then(column).alias(column)


SHAPES = {
    "few relevant": (frame(relevant=0.03), True),
    "many relevant": (frame(relevant=0.7), True),
    "float32": (frame().with_columns(pl.col("score").cast(pl.Float32)), True),
    "integer scores": (frame().with_columns((pl.col("score") * 2).cast(pl.Int16)), True),
    "wide integer scores": (
        frame().with_columns(pl.col("score").cast(pl.Int64) * 2**60 + 2**59),
        True,
    ),
    "unretrieved rows": (frame().with_columns(some_null("score")), True),
    "unretrieved rows, float32": (
        frame().with_columns(some_null("score").cast(pl.Float32)),
        True,
    ),
    "the extremes of a score": (
        frame().with_columns(
            pl.when(pl.col("n") % 5 == 0).then(float("-inf")).otherwise(some_null("score"))
            .cast(pl.Float32).alias("score")
        ),
        True,
    ),
    "unjudged rows": (frame().with_columns(some_null("label")), True),
    "negative labels": (frame().with_columns(pl.col("label") - 2), True),
    "only large labels": (frame().with_columns(pl.col("label") + 10), True),
    "whole float labels": (frame().with_columns(some_null("label").cast(pl.Float32)), True),
    "labels that are no whole numbers": (frame().with_columns(pl.col("label") * 0.75), False),
    "labels far apart": (
        frame().with_columns(pl.when(pl.col("n") == 5).then(2**60).otherwise("label").alias("label")),
        False,
    ),
    "Boolean labels": (frame().with_columns(pl.col("label") > 1), True),
    "queries far apart": (
        frame().with_columns(pl.col("query_id") * (2**62 // 10) - 2**62, pl.col("score").cast(pl.Float32)),
        True,
    ),
    "queries too far apart": (
        frame().with_columns(pl.col("query_id") * (2**62 // 10) - 2**62, some_null("score")),
        False,
    ),
    "unsigned queries": (
        frame().with_columns(pl.col("query_id").cast(pl.UInt64) + 2**63 - 10),
        False,
    ),
    "dates": (
        frame().with_columns(pl.lit(date(1969, 12, 25)) + pl.col("query_id") * timedelta(days=1)).rename(
            {"literal": "day"}
        ).drop("query_id").rename({"day": "query_id"}),
        True,
    ),
    "strings": (frame().with_columns(pl.format("q{}", "query_id").alias("query_id")), False),
    "decimals": (frame().with_columns(pl.col("score").cast(pl.Decimal(10, 1))), True),
    "no label at all": (frame().with_columns(label=pl.lit(None, dtype=pl.Int8)), True),
}  # fmt: skip


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each table was packed."""
    seen: list[bool] = []
    original = packed.pack

    def pack(rows: Rows, query: pl.Expr | None) -> Rows:
        result = original(rows, query)
        seen.append(isinstance(result, packed.PackedRows))
        return result

    monkeypatch.setattr(packed, "pack", pack)
    return seen


@pytest.mark.parametrize("ties", ["block", "expected", "best", "worst", "order"])
@pytest.mark.parametrize("shape", SHAPES)
def test_packed_or_not_the_numbers_are_the_same(
    shape: str, ties: rk._typing.Ties, packings: list[bool]
) -> None:
    table, fits = SHAPES[shape]
    got = rk.per_query(table, *MEASURES, ties=ties)
    assert packings == [fits]
    assert_frame_equal(
        got, rk.per_query(table.lazy(), *MEASURES, ties=ties).collect(), abs_tol=1e-12
    )
    assert packings == [fits], "a lazy plan looks at nothing before it runs"


@pytest.mark.parametrize("shape", ["unretrieved rows", "unjudged rows", "negative labels"])
def test_judged_only_leaves_rows_out(shape: str, packings: list[bool]) -> None:
    table, _ = SHAPES[shape]
    got = rk.per_query(table, *MEASURES, judged_only=True)
    assert packings == [True]
    expected = rk.per_query(table.lazy(), *MEASURES, judged_only=True).collect()
    assert_frame_equal(got, expected, abs_tol=1e-12)


def test_one_ranking_is_packed(packings: list[bool]) -> None:
    table, _ = SHAPES["unretrieved rows"]
    got = rk.per_query(table, *MEASURES, query=None)
    assert packings == [True]
    assert_frame_equal(
        got, rk.per_query(table.lazy(), *MEASURES, query=None).collect(), abs_tol=1e-12
    )


def test_documents_break_ties_of_packed_rows(packings: list[bool]) -> None:
    table = frame().with_columns(doc_id=pl.format("d{}", pl.col("n") * 17 % 300))
    got = rk.per_query(table, *MEASURES, ties="doc")
    assert packings == [True]
    assert_frame_equal(
        got, rk.per_query(table.lazy(), *MEASURES, ties="doc").collect(), abs_tol=1e-12
    )
