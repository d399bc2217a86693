"""The oracle against worked values, its own closed forms, and scikit-learn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (  # type: ignore[import-untyped]
    average_precision_score,
    ndcg_score,
    roc_auc_score,
)

from oracle import TIES, Label, Row, measure
from strategies import QUERIES, Table, rankings, tables

STRICT = ("best", "worst", "order", "doc")
BINARY = ("P", "R", "F", "Rprec", "RBP", "SetP", "SetR", "SetF", "RR", "Success", "AP", "AUC")
GRADED = ("CG", "DCG", "nDCG", "ERR", "Judged")
COUNTS = ("NumRet", "NumRel", "NumRelRet")
CUT = ("P", "R", "F", "CG", "DCG", "nDCG", "RBP", "Judged", "RR", "Success", "ERR", "AP")


def ranking(text: str, *, unretrieved: tuple[Label, ...] = ()) -> list[Row]:
    """Rows of ``"1,0 | -"``: blocks in descending order of score, ``-`` a null label."""
    rows = [
        Row(None if label.strip() == "-" else int(label), -position, f"d{position}{place}")
        for position, block in enumerate(text.split("|"))
        for place, label in enumerate(block.split(","))
    ]
    return rows + [Row(label, None, f"u{i}") for i, label in enumerate(unretrieved)]


SEEN = ranking("1 | 0 | 0 | 0", unretrieved=(1,))
ALL_IN = "1 | 0 | 1 | 0"
GAINS = "3 | 2 | 3 | 0 | 1 | 2"


@pytest.mark.parametrize(
    ("rows", "name", "options", "expected"),
    [
        (ranking("1 | 0 | 1 | 0 | 1"), "AP", {}, Fraction(34, 45)),
        (ranking("1,0 | 1"), "AP", {}, Fraction(7, 12)),
        (ranking("1,0 | 1"), "AP", {"ties": "expected"}, Fraction(17, 24)),
        (ranking("0 | 0 | 1 | 1"), "AP", {}, Fraction(5, 12)),
        (ranking(ALL_IN), "AP", {}, Fraction(5, 6)),
        (ranking("1 | 0 | 1 | 0 | 0 | 1"), "AP", {}, Fraction(13, 18)),
        (ranking("0 | 1,1"), "AP", {}, Fraction(2, 3)),
        (ranking("0 | 1,1"), "AP", {"ties": "best"}, Fraction(7, 12)),
        # By hand: the cut leaves 2 of 3 tied rows, with 4/3 relevant, at precision (4/3) / 3.
        (ranking("0 | 1,1,0"), "AP", {"k": 3}, Fraction(8, 27)),
        (ranking("0 | 1 | 1"), "IPrec", {"r": 0.5}, Fraction(2, 3)),
        (ranking("1 | 0 | 1"), "IPrec", {"r": 0.5}, 1),
        (ranking("1,0 | 1"), "IPrec", {"r": 0.5}, Fraction(2, 3)),
        (SEEN, "IPrec", {"r": 0.6}, 0),
        (SEEN, "P", {"k": 10}, Fraction(1, 10)),
        (SEEN, "R", {"k": 10}, Fraction(1, 2)),
        (SEEN, "F", {"k": 1}, Fraction(2, 3)),
        (SEEN, "F", {"k": 1, "beta": 2}, Fraction(5, 9)),
        (SEEN, "Rprec", {}, Fraction(1, 2)),
        (SEEN, "SetP", {}, Fraction(1, 4)),
        (SEEN, "SetR", {}, Fraction(1, 2)),
        (SEEN, "SetF", {}, Fraction(1, 3)),
        (SEEN, "NumRet", {}, 4),
        (SEEN, "NumRel", {}, 2),
        (SEEN, "NumRelRet", {}, 1),
        (ranking("0,0,1"), "RR", {}, Fraction(11, 18)),
        (ranking("0,0,1"), "RR", {"k": 1}, Fraction(1, 3)),
        (ranking("0,0,1"), "Success", {"k": 2}, Fraction(2, 3)),
        (ranking("0 | 1 | 2"), "RR", {"rel": 2}, Fraction(1, 3)),
        (ranking("1 | 0 | 1"), "RBP", {"p": 0.5}, Fraction(5, 8)),
        (ranking("- | -1 | 0 | 1"), "Judged", {"k": 3}, Fraction(1, 3)),
        (ranking("- | 1"), "Judged", {"k": 10}, Fraction(1, 2)),
        (ranking("- | -1 | 1"), "AP", {"judged_only": True}, 1),
        (ranking("2 | 1"), "ERR", {"max_label": 2}, Fraction(3, 4) + Fraction(1, 32)),
        (ranking("0 | 4"), "ERR", {"discount": "log2"}, Fraction(15, 16) / Fraction(math.log2(3))),
        (ranking("1,0 | - | -1"), "AUC", {}, Fraction(5, 6)),
        (ranking("1,0 | - | -1"), "AUC", {"ties": "worst"}, Fraction(2, 3)),
        (ranking("2 | 1"), "CG", {"gain": "exp2"}, 4),
    ],
)
def test_exact_value(
    rows: list[Row], name: str, options: dict[str, Any], expected: Fraction
) -> None:
    assert measure(rows, name, **options) == pytest.approx(float(expected), abs=1e-15)


@pytest.mark.parametrize(
    ("unretrieved", "expected", "ideal_dcg"),
    [
        ((3, 2), {"CG": 11, "DCG": 6.861, "nDCG": 0.785}, 8.740),
        ((3, 0), {"CG": 11, "DCG": 6.861, "nDCG": 0.818}, 8.384),
    ],
)
def test_worked_gains(
    unretrieved: tuple[Label, ...], expected: dict[str, float], ideal_dcg: float
) -> None:
    rows = ranking(GAINS, unretrieved=unretrieved)
    values = {name: measure(rows, name, k=6) for name in expected}
    assert values == pytest.approx(expected, abs=5e-4)
    ideal = sorted((row.label or 0 for row in rows), reverse=True)
    ideal_rows = [Row(label, -i) for i, label in enumerate(ideal)]
    assert measure(ideal_rows, "DCG", k=6) == pytest.approx(ideal_dcg, abs=5e-4)
    assert measure(ideal_rows, "nDCG", k=6) == 1


def test_precision_recall_points() -> None:
    p = [measure(ranking(ALL_IN), "P", k=k) or 0 for k in range(1, 5)]
    r = [measure(ranking(ALL_IN), "R", k=k) or 0 for k in range(1, 5)]
    assert sum(p) / 4 == pytest.approx(2 / 3)
    assert np.trapezoid([1, *p], [0, *r]) == pytest.approx(19 / 24)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(("no_relevant", "value"), [("zero", 0), ("one", 1), ("null", None)])
def test_nothing_relevant(ties: str, no_relevant: str, value: float | None) -> None:
    rows = ranking("0 | -,-1", unretrieved=(0,))

    def of(name: str, **params: Any) -> float | None:
        return measure(rows, name, ties=ties, no_relevant=no_relevant, **params)

    for name in ("R", "F", "Success", "AP", "RR", "nDCG", "ERR", "RBP"):
        assert of(name, k=2) == value
    for name in ("Rprec", "SetR", "SetF"):
        assert of(name) == value
    assert of("IPrec", r=0.5) == value
    assert [of(name, k=2) for name in ("P", "CG", "DCG")] == [0, 0, 0]
    assert [of("SetP"), of("NumRel"), of("NumRet")] == [0, 0, 3]
    assert of("AUC") is None


def test_nothing_relevant_for_its_own_rel() -> None:
    rows = ranking("1 | 0")
    assert measure(rows, "AP", rel=2, no_relevant="one") == 1
    assert measure(rows, "AP", no_relevant="error") == 1
    with pytest.raises(ValueError, match="no relevant"):
        measure(rows, "AP", rel=2, no_relevant="error")


def test_nothing_retrieved() -> None:
    rows = [Row(2, None, "u")]
    options: dict[str, Any] = {"no_relevant": "one"}
    for name in ("P", "R", "F", "CG", "DCG", "nDCG", "RBP", "Judged", "RR", "Success", "ERR", "AP"):
        assert measure(rows, name, k=3, **options) == 0
    for name in ("Rprec", "SetP", "SetR", "SetF"):
        assert measure(rows, name, **options) == 0
    assert measure(rows, "AUC", **options) is None


def test_strict_orders() -> None:
    labels: list[Label] = [1, None, 0, -1, 2]
    docs = ["a", "é", "z", "Z", "b"]
    rows = [
        Row(label, 0.0 if i % 2 else -0.0, doc)
        for i, (label, doc) in enumerate(zip(labels, docs, strict=True))
    ]

    def ranks(rel: int, ties: str) -> int:
        return round(1 / (measure(rows, "RR", rel=rel, ties=ties) or 0))

    assert [ranks(2, ties) for ties in STRICT] == [1, 5, 5, 3]  # doc: é z b a Z
    assert [measure(rows, "AP", ties=ties) for ties in STRICT] == pytest.approx(
        [1, (1 / 4 + 2 / 5) / 2, (1 + 2 / 5) / 2, (1 / 3 + 2 / 4) / 2]
    )
    assert [measure(rows, "Judged", k=1, ties=ties) for ties in ("best", "worst")] == [1, 0]


def test_large_integers_are_not_tied() -> None:
    rows = [Row(0, 2**53, "a"), Row(1, 2**53 + 1, "b")]
    assert measure(rows, "RR", ties="expected") == 1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="max_label"):
        measure(ranking("3"), "ERR", max_label=2)
    with pytest.raises(ValueError, match="cutoff"):
        measure(ranking("3"), "P", k=0)
    with pytest.raises(ValueError, match="ties"):
        measure(ranking("3"), "AP", ties="none")
    with pytest.raises(ValueError, match="documents"):
        measure([Row(1, 1, None)], "AP", ties="doc")
    with pytest.raises(TypeError):
        measure(ranking("3"), "AP", gain="linear")


def draw_params(data: st.DataObject, name: str) -> dict[str, Any]:
    """Parameters that the measure takes, some of the time."""
    params: dict[str, Any] = {}
    if name in ("P", "F") or (name in CUT and data.draw(st.booleans())):
        params["k"] = data.draw(st.integers(1, 8))
    if name in BINARY and data.draw(st.booleans()):
        params["rel"] = data.draw(st.sampled_from([1, 2, 0.5]))
    if name in ("CG", "DCG", "nDCG"):
        params["gain"] = data.draw(st.sampled_from(["linear", "exp2"]))
    if name in ("F", "SetF"):
        params["beta"] = data.draw(st.sampled_from([1, 2, 0.5]))
    if name == "ERR":
        params["discount"] = data.draw(st.sampled_from([None, "log2"]))
    return params


@pytest.mark.parametrize("name", BINARY + GRADED + COUNTS)
@settings(max_examples=25, deadline=None)
@given(rows=rankings(max_block=4), data=st.data())
def test_closed_forms_are_means_over_orders(
    name: str, rows: list[Row], data: st.DataObject
) -> None:
    params = draw_params(data, name)
    listed = measure(rows, name, ties="expected", max_orders=600, **params)
    closed = measure(rows, name, ties="expected", max_orders=0, **params)
    if listed is None:
        assert closed is None
    else:
        assert closed == pytest.approx(listed, rel=1e-13, abs=1e-15)
    if name != "AP":
        assert measure(rows, name, max_orders=0, **params) == closed


@pytest.mark.parametrize("name", BINARY + GRADED)
@settings(max_examples=20, deadline=None)
@given(rows=rankings(), data=st.data())
def test_worst_and_best_are_bounds(name: str, rows: list[Row], data: st.DataObject) -> None:
    params = draw_params(data, name)
    value = {ties: measure(rows, name, ties=ties, max_orders=0, **params) for ties in TIES}
    low, high = value["worst"], value["best"]
    if low is None or high is None:
        assert set(value.values()) == {None}
        return
    for ties in ("expected", "order", "doc"):
        middle = value[ties]
        assert middle is not None
        assert low - 1e-12 <= middle <= high + 1e-12
    block = value["block"]
    assert block is not None
    assert low - 1e-12 <= block  # but it can exceed the best of the orders


@settings(max_examples=50, deadline=None)
@given(rows=rankings(), r=st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]))
def test_interpolated_precision_is_bounded_and_falls_with_recall(rows: list[Row], r: float) -> None:
    for ties in TIES:
        value, full = measure(rows, "IPrec", r=r, ties=ties), measure(rows, "IPrec", r=1, ties=ties)
        assert value is not None
        assert full is not None
        assert full <= value <= 1


JUDGED_RANKING = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=30)


@settings(max_examples=60, deadline=None)
@given(cells=JUDGED_RANKING, k=st.none() | st.integers(1, 12))
def test_agrees_with_scikit_learn(cells: list[tuple[int, int]], k: int | None) -> None:
    rows = [Row(label, score) for label, score in cells]
    label, score = np.array(cells).T
    ndcg = ndcg_score([label], [score], k=k)
    assert measure(rows, "nDCG", k=k) == pytest.approx(ndcg, abs=1e-12)
    if label.any():
        ap = average_precision_score(label > 0, score)
        assert measure(rows, "AP") == pytest.approx(ap, abs=1e-12)
        if label.all():
            return
        auc = roc_auc_score(label > 0, score)
        assert measure(rows, "AUC") == pytest.approx(auc, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(table=tables())
def test_table_and_frame_hold_the_same_rows(table: Table) -> None:
    frame = table.to_frame()
    assert frame.schema == {
        "query_id": pl.String,
        "doc_id": table.doc,
        "label": table.label,
        "score": table.score,
    }
    assert frame.rows() == [(q, row.doc, row.label, row.score) for q, row in table.rows]
    assert set(frame["query_id"]) == set(table.by_query()) <= set(QUERIES)
    assert not frame.select("query_id", "doc_id").is_duplicated().any()


@settings(max_examples=30, deadline=None)
@given(table=tables(contiguous=True))
def test_contiguous_tables(table: Table) -> None:
    assert table.to_frame()["query_id"].rle().len() == len(table.by_query())
