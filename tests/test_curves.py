"""Curves and the measures read off them: worked values, and scikit-learn on tables full of ties, with and without weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics  # type: ignore[import-untyped]

import polars_rankeval as rk

ALTERNATING = pl.DataFrame({"label": [1, 0, 1, 0], "score": [4, 3, 2, 1]})


@st.composite
def rows(draw: st.DrawFn) -> pl.DataFrame:
    """Rows of two classes with few scores, and weights of which some are zero."""
    size = draw(st.integers(2, 25))

    def column(values: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(values, min_size=size, max_size=size))

    frame = pl.DataFrame(
        {
            "label": column(st.sampled_from([0, 1])),
            "score": column(st.sampled_from([-1.5, 0.0, 0.25, 3.0])),
            "w": column(st.sampled_from([0.0, 0.5, 1.0, 2.75])),
        }
    )
    weights = frame.group_by("label").agg(pl.col("w").sum())
    assume(weights.height == 2 and (weights["w"] > 0).all())
    return frame


def arrays(frame: pl.DataFrame, weight: str | None) -> tuple[object, object, object]:
    return (
        frame["label"].to_numpy(),
        frame["score"].to_numpy(),
        frame["w"].to_numpy() if weight else None,
    )


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("AP", Fraction(5, 6)),
        ("PRTrapezoid", Fraction(19, 24)),
        ("MaxF", Fraction(4, 5)),
        ("MaxF(beta=2)", Fraction(10, 11)),
        ("PrecisionAtRecall(r=0.5)", Fraction(1)),
        ("PrecisionAtRecall(r=0.9)", Fraction(2, 3)),
        ("RecallAtPrecision(p=1)", Fraction(1, 2)),
        ("RecallAtPrecision(p=0.6)", Fraction(1)),
        ("AUC", Fraction(3, 4)),
    ],
)
def test_worked_values(measure: str, value: Fraction) -> None:
    assert rk.per_query(ALTERNATING, measure, query=None).item() == pytest.approx(
        float(value), abs=1e-15
    )


def test_two_scores() -> None:
    frame = pl.DataFrame({"label": [1, 0, 1], "score": [2, 2, 1]})
    assert rk.per_query(frame, "AP", query=None).item() == pytest.approx(7 / 12, abs=1e-15)


def test_mean_of_precisions_is_another_number() -> None:
    curve = rk.pr_curve(ALTERNATING, query=None)
    assert curve["precision"].mean() == pytest.approx(2 / 3, abs=1e-15)


@settings(max_examples=60)
@given(frame=rows(), weight=st.sampled_from([None, "w"]))
def test_as_scikit_learn(frame: pl.DataFrame, weight: str | None) -> None:
    label, score, w = arrays(frame, weight)
    precision, recall, threshold = metrics.precision_recall_curve(label, score, sample_weight=w)
    ours = rk.pr_curve(frame, query=None, weight=weight, endpoint=True)
    ours = ours.reverse()
    np.testing.assert_allclose(ours["precision"], precision, atol=1e-12)
    np.testing.assert_allclose(ours["recall"], recall, atol=1e-12)
    np.testing.assert_array_equal(ours["threshold"].drop_nulls(), threshold)

    fpr, tpr, _ = metrics.roc_curve(label, score, sample_weight=w, drop_intermediate=False)
    ours = rk.roc_curve(frame, query=None, weight=weight, endpoint=True)
    np.testing.assert_allclose(ours["fpr"], fpr, atol=1e-12)
    np.testing.assert_allclose(ours["tpr"], tpr, atol=1e-12)

    got = rk.per_query(frame, "AP", "AUC", query=None, weight=weight).row(0)
    wanted = (
        metrics.average_precision_score(label, score, sample_weight=w),
        metrics.roc_auc_score(label, score, sample_weight=w),
    )
    assert got == pytest.approx(wanted, abs=1e-12)
    options = {} if weight is None else {"weight": weight}
    expressions = frame.select(
        ap=rk.average_precision("label", "score", **options),  # type: ignore[arg-type]
        auc=rk.auc("label", "score", **options),  # type: ignore[arg-type]
    ).row(0)
    assert expressions == pytest.approx(wanted, abs=1e-12)


@settings(max_examples=60)
@given(
    frame=rows(), weight=st.sampled_from([None, "w"]), threshold=st.sampled_from([-2, 0.0, 0.1, 4])
)
def test_confusion_as_scikit_learn(
    frame: pl.DataFrame, weight: str | None, threshold: float
) -> None:
    label, _, w = arrays(frame, weight)
    called = (frame["score"] >= threshold).cast(pl.Int8).to_numpy()
    got = rk.confusion(frame, threshold=threshold, query=None, weight=weight).row(0, named=True)
    tn, fp, fn, tp = metrics.confusion_matrix(label, called, labels=[0, 1], sample_weight=w).ravel()
    assert [got[c] for c in ("tn", "fp", "fn", "tp")] == pytest.approx([tn, fp, fn, tp], abs=1e-12)
    wanted = {
        "f": metrics.f1_score(label, called, sample_weight=w, zero_division=0),
        "balanced_accuracy": metrics.balanced_accuracy_score(label, called, sample_weight=w),
        "mcc": metrics.matthews_corrcoef(label, called, sample_weight=w),
        "accuracy": metrics.accuracy_score(label, called, sample_weight=w),
    }
    for name, value in wanted.items():
        assert got[name] is None or got[name] == pytest.approx(value, abs=1e-12), name
    nothing_called = tp + fp == 0
    assert (got["f"] is None) == (got["precision"] is None) == nothing_called
    assert (got["mcc"] is None) == (nothing_called or tn + fn == 0)


def test_all_negative() -> None:
    frame = pl.DataFrame({"label": [1] + [0] * 999, "score": [0.1] * 1000})
    for beta in (0.5, 1.0, 2.0):
        row = rk.confusion(frame, threshold=0.5, query=None, beta=beta).row(0, named=True)
        assert (row["accuracy"], row["recall"], row["precision"], row["f"]) == (
            0.999,
            0.0,
            None,
            None,
        )


@pytest.mark.parametrize(("beta", "f"), [(1, 0.5), (2, 10 / 17), (0.5, 5 / 11.5)])
def test_f_by_hand(beta: float, f: float) -> None:
    # 1,000 rows, one positive in the first block of three: precision 1/3, recall 1.
    frame = pl.DataFrame({"label": [1] + [0] * 999, "score": [1.0] * 3 + [0.0] * 997})
    row = rk.confusion(frame, threshold=1, query=None, beta=beta).row(0, named=True)
    precision, recall = 1 / 3, 1.0
    assert row["f"] == pytest.approx(
        (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    )


def test_top_k_shares_blocks_and_counts_what_was_not_retrieved() -> None:
    frame = pl.DataFrame(
        {"query_id": [1, 1, 1, 1, 2], "label": [1, 0, 0, 1, 1], "score": [2, 2, 1, None, None]}
    )
    got = rk.confusion(frame, k=[1, 2]).select("query_id", "k", "tp", "fp", "fn", "tn").rows()
    assert got == [
        (1, 1, 0.5, 0.5, 1.5, 1.5),
        (1, 2, 1.0, 1.0, 1.0, 1.0),
        (2, 1, 0.0, 0.0, 1.0, 0.0),
        (2, 2, 0.0, 0.0, 1.0, 0.0),
    ]


def test_curve_per_group_and_per_query() -> None:
    one = ALTERNATING.with_columns(query_id=pl.lit("q"), country=pl.lit("fi"))
    two = one.with_columns(country=pl.lit("se"), score=-pl.col("score"))
    both = pl.concat([two, one])
    curves = rk.pr_curve(both, by="country", query=None)
    assert curves.columns == ["country", "threshold", "tp", "fp", "precision", "recall"]
    assert curves.filter(country="fi").drop("country").equals(rk.pr_curve(ALTERNATING, query=None))
    assert rk.pr_curve(both, by="country").drop("query_id").equals(curves)
    lazy = rk.pr_curve(both.lazy(), by="country", query=None)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(curves)


def test_recall_counts_what_was_not_retrieved() -> None:
    frame = pl.DataFrame({"label": [1, 1, 0], "score": [1.0, None, None]})
    assert rk.pr_curve(frame, query=None)["recall"].to_list() == [0.5]
    assert rk.roc_curve(frame, query=None)["tpr"].to_list() == [1.0]


def test_drop_collinear() -> None:
    frame = pl.DataFrame({"label": [1, 1, 1, 0, 0, 0], "score": [6, 5, 4, 3, 2, 1]})
    roc = rk.roc_curve(frame, query=None, drop_collinear=True)
    assert roc.select("tp", "fp").rows() == [(1, 0), (3, 0), (3, 3)]
    curve = rk.pr_curve(frame, query=None, drop_collinear=True)
    assert curve.select("tp", "fp").rows() == [(1, 0), (2, 0), (3, 0), (3, 3)]


def test_constant_scores_and_one_class() -> None:
    frame = pl.DataFrame({"label": [1, 0, 0, 0], "score": [7] * 4})
    assert rk.per_query(frame, "AUC", "AP", query=None).row(0) == (0.5, 0.25)
    negatives = frame.filter(pl.col("label") == 0)
    assert rk.per_query(negatives, "AUC", "MaxF", query=None, no_relevant="null").row(0) == (
        None,
        None,
    )
    with pytest.raises(rk.RankEvalError, match="MaxF is undefined for 1 query"):
        rk.per_query(negatives, "MaxF", query=None, no_relevant="error")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either threshold= or k="),
        ({"threshold": 1, "k": 1}, "either threshold= or k="),
        ({"threshold": float("nan")}, "finite numbers"),
        ({"k": 0}, "whole numbers of at least 1"),
        ({"k": 1, "weight": "w"}, "have no weights"),
        ({"threshold": 1, "beta": 0}, "beta must be a number above 0"),
        ({"threshold": 1, "rel": 0}, "rel must be a number above 0"),
    ],
)
def test_refused(arguments: dict[str, object], message: str) -> None:
    frame = ALTERNATING.with_columns(w=1.0)
    with pytest.raises(rk.RankEvalError, match=message):
        rk.confusion(frame, query=None, **arguments)  # type: ignore[call-overload]


@pytest.mark.parametrize("function", [rk.pr_curve, rk.roc_curve])
def test_bad_weights(function: object) -> None:
    frame = ALTERNATING.with_columns(w=pl.Series([1.0, -1.0, None, 1.0]))
    with pytest.raises(
        rk.RankEvalError, match="weight column 'w' is null, negative or not finite in 2 rows"
    ):
        function(frame, query=None, weight="w")  # type: ignore[operator]


def test_weights_where_they_have_no_meaning() -> None:
    frame = ALTERNATING.with_columns(w=1.0)
    with pytest.raises(rk.RankEvalError, match="nDCG, AP@3 cannot take weights of rows"):
        rk.per_query(frame, "nDCG", "AP@3", "AP", query=None, weight="w")
    with pytest.raises(rk.RankEvalError, match='ties="block"'):
        rk.per_query(frame, "AP", query=None, weight="w", ties="best")
    with pytest.raises(TypeError, match="weight"):
        rk.ndcg("label", "score", weight="w")  # type: ignore[call-arg]
