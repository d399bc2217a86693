"""Values worked out by hand, written as labels in descending order of score with `|` between tie blocks."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from ways import Way


def ranking(text: str, unretrieved: tuple[int, ...] = ()) -> pl.DataFrame:
    """The table of one query; `-` is a null label."""
    rows = [
        (None if label.strip() == "-" else int(label), float(-block))
        for block, labels in enumerate(text.split("|"))
        for label in labels.split(",")
    ]
    return pl.DataFrame(
        [("q", *row) for row in rows] + [("q", label, None) for label in unretrieved],
        schema={"query_id": pl.String, "label": pl.Int64, "score": pl.Float64},
        orient="row",
    )


ALL_IN = "1 | 0 | 1 | 0"
GAINS = "3 | 2 | 3 | 0 | 1 | 2"
LOG3 = 1 / math.log2(3)

#: Retrieved, unretrieved, measure, options, value.
EXACT: list[tuple[str, tuple[int, ...], str, dict[str, Any], float | None]] = [
    ("1 | 0 | 1 | 0 | 1", (), "AP", {}, 34 / 45),
    ("1,0 | 1", (), "AP", {}, 7 / 12),
    ("1,0 | 1", (), "AP", {"ties": "expected"}, 17 / 24),
    ("0 | 0 | 1 | 1", (), "AP", {}, 5 / 12),
    (ALL_IN, (), "AP", {}, 5 / 6),
    ("1 | 0 | 1 | 0 | 0 | 1", (), "AP", {}, (1 + 2 / 3 + 3 / 6) / 3),
    ("0 | 1,1", (), "AP", {}, 2 / 3),
    ("0 | 1,1", (), "AP", {"ties": "best"}, 7 / 12),
    ("0 | 1,1,0", (), "AP@3", {}, 8 / 27),
    ("1 | 0", (1,), "AP", {}, 1 / 2),
    ("1 | 0 | 0 | 0", (1,), "P@10", {}, 1 / 10),
    ("1 | 0 | 0 | 0", (1,), "R@10", {}, 1 / 2),
    ("1 | 0 | 0 | 0", (1,), "F@1", {}, 2 / 3),
    ("1 | 0 | 0 | 0", (1,), "F(beta=2)@1", {}, 5 / 9),
    ("1 | 0 | 0 | 0", (1,), "Rprec", {}, 1 / 2),
    ("1 | 0 | 0 | 0", (1,), "SetP", {}, 1 / 4),
    ("1 | 0 | 0 | 0", (1,), "SetR", {}, 1 / 2),
    ("1 | 0 | 0 | 0", (1,), "SetF", {}, 1 / 3),
    ("0,0,1", (), "RR", {}, 11 / 18),
    ("0,0,1", (), "RR@1", {}, 1 / 3),
    ("0,0,1", (), "RR", {"ties": "best"}, 1),
    ("0,0,1", (), "RR", {"ties": "worst"}, 1 / 3),
    ("0,1,0", (), "RR", {"ties": "order"}, 1 / 2),
    ("0,0,1", (), "Success@2", {}, 2 / 3),
    ("0 | 1 | 2", (), "RR(rel=2)", {}, 1 / 3),
    ("1 | 0 | 1", (), "RBP(p=0.5)", {}, 5 / 8),
    ("- | -1 | 0 | 1", (), "Judged@3", {}, 1 / 3),
    ("- | 1", (), "Judged@10", {}, 1 / 2),
    ("- | -1 | 1", (), "AP", {"judged_only": True}, 1),
    ("- | -1 | 1", (), "AP", {}, 1 / 3),
    ("2 | 1", (), "ERR(max_label=2)", {}, 3 / 4 + 1 / 32),
    ("0 | 4", (), "ERR(discount=log2)", {}, 15 / 16 * LOG3),
    ("4,0", (), "ERR", {}, 15 / 16 * 3 / 4),
    ("4,4", (), "ERR", {}, 15 / 16 + 1 / 16 * 15 / 16 / 2),
    ("1,0 | - | -1", (), "AUC", {}, 5 / 6),
    ("1,0 | - | -1", (), "AUC", {"ties": "worst"}, 2 / 3),
    ("1,1", (), "AUC", {"no_relevant": "one"}, None),
    ("2 | 1", (), "CG(gain=exp2)@2", {}, 4),
    ("1,0", (), "nDCG", {}, (1 + LOG3) / 2),
    ("2 | 0", (3,), "nDCG(gain=exp2)", {}, 3 / (7 + 3 * LOG3)),
    ("0 | -", (), "AP", {}, 0),
    ("0 | -", (), "AP", {"no_relevant": "one"}, 1),
    ("0 | -", (), "AP", {"no_relevant": "null"}, None),
    ("0 | -", (), "P@1", {"no_relevant": "null"}, 0),
]


@pytest.mark.parametrize("case", EXACT, ids=lambda case: f"{case[0]}: {case[2]}")
def test_exact(
    case: tuple[str, tuple[int, ...], str, dict[str, Any], float | None], way: Way
) -> None:
    text, unretrieved, measure, options, value = case
    result = way(ranking(text, unretrieved), lambda f: f.rankeval.per_query(measure, **options))
    got = result[measure].item()
    assert got is None if value is None else got == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("unretrieved", "ideal_dcg", "ndcg"), [((3, 2), 8.740, 0.785), ((3, 0), 8.384, 0.818)]
)
def test_gains(unretrieved: tuple[int, ...], ideal_dcg: float, ndcg: float, way: Way) -> None:
    frame = ranking(GAINS, unretrieved)
    got = way(frame, lambda f: f.rankeval.per_query("CG@6", "DCG@6", "nDCG@6"))
    assert got.row(0)[1:] == pytest.approx((11, 6.861, ndcg), abs=5e-4)
    ideal = way(frame, lambda f: f.rankeval.per_query("DCG@6", "nDCG@6", score="label"))
    assert ideal.row(0)[1:] == pytest.approx((ideal_dcg, 1), abs=5e-4)


def test_mean_of_precisions_and_area_under_their_points(way: Way) -> None:
    names = [f"{name}@{k}" for name in ("P", "R") for k in range(1, 5)]
    got = way(ranking(ALL_IN), lambda f: f.rankeval.per_query(*names)).row(0)[1:]
    p, r = [1.0, *got[:4]], [0.0, *got[4:]]
    assert sum(got[:4]) / 4 == pytest.approx(2 / 3)
    area = sum((r[i] - r[i - 1]) * (p[i] + p[i - 1]) / 2 for i in range(1, 5))
    assert area == pytest.approx(19 / 24)
