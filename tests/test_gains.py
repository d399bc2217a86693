"""Explicit gains: what labels are worth, negative values included, in one formula and both suppliers."""

from __future__ import annotations

import math

import polars as pl
import pytest

import polars_rankeval as rk
from ways import Way

TABLE = pl.DataFrame({"query_id": [1] * 4, "label": [2, 0, -1, 1], "score": [4, 3, 2, 1]})
WEIGHT = [1 / math.log2(position + 1) for position in range(1, 5)]
BAD = {1: 3, 2: 9, 0: -1, -1: -5}
DCG = 9 * WEIGHT[0] - WEIGHT[1] - 5 * WEIGHT[2] + 3 * WEIGHT[3]
IDEAL = 9 * WEIGHT[0] + 3 * WEIGHT[1]


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (rk.Measure("DCG", gains=BAD), DCG),
        (rk.Measure("nDCG", gains=BAD), DCG / IDEAL),
        (rk.Measure("CG", gains=BAD), 6.0),
        (rk.Measure("nDCG", k=2, gains={1: 3, 2: 9}), 9 * WEIGHT[0] / IDEAL),
        ("nDCG(gains=1:3;2:9)@2", 9 * WEIGHT[0] / IDEAL),
    ],
    ids=str,
)
@pytest.mark.parametrize("ties", ["block", "expected", "best", "worst", "order"])
def test_values(measure: str | rk.Measure, value: float, ties: str, way: Way) -> None:
    got = way(TABLE, lambda f: f.rankeval.per_query(measure, ties=ties))
    assert got[:, -1].to_list() == pytest.approx([value], abs=1e-12)


def test_expressions() -> None:
    got = TABLE.select(
        rk.dcg("label", "score", gains=BAD).alias("dcg"),
        rk.ndcg("label", "score", gains=BAD).alias("ndcg"),
        rk.cg("label", "score", gains=BAD).alias("cg"),
    )
    assert got.row(0) == pytest.approx((DCG, DCG / IDEAL, 6.0), abs=1e-12)


def test_tied_rows_share_gains() -> None:
    tied = TABLE.with_columns(score=1)
    mean = (9 - 1 - 5 + 3) / 4 * sum(WEIGHT)
    assert rk.per_query(tied, rk.Measure("DCG", gains=BAD))[:, -1].to_list() == pytest.approx(
        [mean]
    )
    bounds = [
        rk.per_query(tied, rk.Measure("DCG", gains=BAD), ties=t)[:, -1].item()
        for t in ("worst", "best")
    ]
    by_label = [9, 3, -1, -5]
    assert bounds == pytest.approx(
        [
            sum(g * w for g, w in zip(order, WEIGHT, strict=True))
            for order in (by_label[::-1], by_label)
        ]
    )


def test_a_short_list_is_padded_with_nothing() -> None:
    assert rk.per_query(TABLE, "CG@9")[:, -1].item() == 3.0
    assert rk.per_query(TABLE, "DCG@9")[:, -1].equals(rk.per_query(TABLE, "DCG@4")[:, -1])


def test_two_ways_to_say_gain() -> None:
    with pytest.raises(rk.RankEvalError, match="give one of them"):
        rk.Measure("nDCG", gain="exp2", gains={1: 3})
