"""Rows in memory are packed into one integer if they fit, and evaluate to what the lazy plan gives either way."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import TypeAlias

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


def full(shift: float) -> pl.Expr:
    """Scores from 0 to 1, no two the same, which need all bits of a float."""
    return (pl.col("n") * 0.618033988749895 + shift) % 1


def some_null(column: str) -> pl.Expr:
    return pl.when(pl.col("n") % 7 != 3).then(column).alias(column)


SHAPES = {
    "few relevant": (frame(relevant=0.03), True),
    "many relevant": (frame(relevant=0.7), True),
    "float32": (frame().with_columns(pl.col("score").cast(pl.Float32)), True),
    "scores of all bits": (frame().with_columns(score=full(0.3)), True),
    "scores of all bits and both signs": (frame().with_columns(score=full(0.3) - 0.5), True),
    "scores of all bits, some the same": (
        frame().with_columns(score=pl.when(pl.col("n") % 50 > 1).then(full(0.3)).otherwise(0.1)),
        True,
    ),
    "scores of all bits, many the same": (frame().with_columns(score=pl.col("score") / 7 + 1 / 3), True),
    "scores that differ in their last bits": (
        frame().with_columns(score=(1 + pl.col("score").rank("dense") * 2**-52) * (pl.col("n") % 3 - 1)),
        True,
    ),
    "a few scores that differ in their last bits": (
        frame(600).with_columns(
            score=pl.when(pl.col("n") < 4).then(1 + pl.col("n") * 2**-52).otherwise(full(0.3)),
            query_id=pl.when(pl.col("n") < 4).then(0).otherwise("query_id"),
        ),
        True,
    ),
    "zeros of both signs": (
        frame().with_columns(score=pl.when(pl.col("n") % 3 == 0).then(-0.0).otherwise(full(0.3) * (pl.col("n") % 2))),
        True,
    ),
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

Packings: TypeAlias = list[pl.DataType | None]


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> Packings:
    """The integer that each table was packed into, None if it was not."""
    seen: Packings = []
    original = packed.pack

    def pack(rows: Rows, query: pl.Expr | None) -> Rows:
        result = original(rows, query)
        seen.append(result.layout.dtype if isinstance(result, packed.PackedRows) else None)
        return result

    monkeypatch.setattr(packed, "pack", pack)
    return seen


@pytest.mark.parametrize("ties", ["block", "expected", "best", "worst", "order"])
@pytest.mark.parametrize("shape", SHAPES)
def test_packed_or_not_the_numbers_are_the_same(
    shape: str, ties: rk._typing.Ties, packings: Packings
) -> None:
    table, fits = SHAPES[shape]
    got = rk.per_query(table, *MEASURES, ties=ties)
    assert [p is not None for p in packings] == [fits]
    assert_frame_equal(
        got, rk.per_query(table.lazy(), *MEASURES, ties=ties).collect(), abs_tol=1e-12
    )
    assert [p is not None for p in packings] == [fits], (
        "a lazy plan looks at nothing before it runs"
    )


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ("float32", pl.Int64),
        ("integer scores", pl.Int64),
        ("scores of all bits", pl.Int64),
        ("scores of all bits, some the same", pl.Int64),
        ("scores of all bits, many the same", pl.Int128),
        ("scores that differ in their last bits", pl.Int128),
        ("a few scores that differ in their last bits", pl.Int128),
    ],
)
def test_the_last_bits_of_scores_are_left_out_only_if_that_changes_no_tie(
    shape: str, dtype: type[pl.DataType], packings: Packings
) -> None:
    rk.per_query(SHAPES[shape][0], *MEASURES)
    assert packings == [dtype]


@pytest.mark.parametrize("shape", ["unretrieved rows", "unjudged rows", "negative labels"])
def test_judged_only_leaves_rows_out(shape: str, packings: Packings) -> None:
    table, _ = SHAPES[shape]
    got = rk.per_query(table, *MEASURES, judged_only=True)
    assert None not in packings
    expected = rk.per_query(table.lazy(), *MEASURES, judged_only=True).collect()
    assert_frame_equal(got, expected, abs_tol=1e-12)


def test_one_ranking_is_packed(packings: Packings) -> None:
    table, _ = SHAPES["unretrieved rows"]
    got = rk.per_query(table, *MEASURES, query=None)
    assert None not in packings
    assert_frame_equal(
        got, rk.per_query(table.lazy(), *MEASURES, query=None).collect(), abs_tol=1e-12
    )


def test_documents_break_ties_of_packed_rows(packings: Packings) -> None:
    table = frame().with_columns(doc_id=pl.format("d{}", pl.col("n") * 17 % 300))
    got = rk.per_query(table, *MEASURES, ties="doc")
    assert None not in packings
    assert_frame_equal(
        got, rk.per_query(table.lazy(), *MEASURES, ties="doc").collect(), abs_tol=1e-12
    )
