"""What went wrong with other tools, kind by kind, on tables of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import polars_rankeval as rk
from oracle import TIES
from ways import Way

NAN, INF = float("nan"), float("inf")
LOG3 = 1 / math.log2(3)


def table(*rows: tuple[Any, ...], query: str = "q") -> pl.DataFrame:
    """Rows of (document, label, score) of one query."""
    frame = pl.DataFrame(rows, schema=["doc_id", "label", "score"], orient="row", strict=False)
    return frame.select(pl.lit(query).alias("query_id"), pl.all())


def values(way: Way, frame: pl.DataFrame, *names: str, **options: Any) -> Sequence[Any]:
    """Measures of the only query."""
    result = way(frame, lambda f: f.rankeval.per_query(*names, **options))
    assert result.height == 1
    return result.row(0)[1:]


def means(way: Way, frame: pl.DataFrame, *names: str, **options: Any) -> Sequence[Any]:
    """Means over the queries."""
    return way(frame, lambda f: f.rankeval.evaluate(*names, **options)).row(0)


# --- ties -----------------------------------------------------------------------------------------


def test_the_name_of_a_tied_document_decides_nothing_unless_asked(way: Way) -> None:
    # Two runs that differ only in what the other tied document is called.
    runs = [table(("m", 3, 0.5), (other, 0, 0.5), ("b", 1, 0.25)) for other in ("a", "z")]
    for ties in ("block", "expected", "best", "worst"):
        first, second = (values(way, run, "RR", "nDCG", "AP", ties=ties) for run in runs)
        assert first == second
    assert [values(way, run, "RR", ties="doc") for run in runs] == [(1.0,), (0.5,)]


@pytest.mark.parametrize("ties", TIES)
def test_all_measures_of_a_call_read_one_ranking(ties: str, way: Way) -> None:
    run = table(("a", None, 1.0), ("b", 1, 1.0), ("c", None, 1.0), ("d", None, 0.5))
    names = ["AP", "RR", "RR@4", "RR@10", "nDCG", "P@1", "Success@1"]
    ap, rr, rr4, rr10, ndcg, p, success = values(way, run, *names, ties=ties)
    assert rr == rr4 == rr10
    assert p == success
    if ties in ("best", "worst", "order", "doc"):
        # One relevant document: all say where it stands.
        assert ap == pytest.approx(rr)
        assert ndcg == pytest.approx(1 / math.log2(1 / rr + 1))


def test_a_retriever_gains_nothing_by_listing_what_is_relevant_first(way: Way) -> None:
    run = table(("a", 1, 1.0), ("b", None, 1.0), ("c", None, 1.0))
    for rows in (run, run.reverse()):
        assert values(way, rows, "RR@10") == (pytest.approx(11 / 18),)
    assert values(way, run, "RR", ties="order") == (1.0,)
    assert values(way, run.reverse(), "RR", ties="order") == (pytest.approx(1 / 3),)


def test_partly_tied_average_precision(way: Way) -> None:
    run = table(("a", 0, 3), ("b", 1, 2), ("c", 0, 2), ("d", 1, 1))
    expected = {
        "block": Fraction(1, 2) * (Fraction(1, 3) + Fraction(2, 4)),
        "expected": Fraction(1, 2) * ((Fraction(1, 2) + Fraction(1, 3)) / 2 + Fraction(2, 4)),
        "best": Fraction(1, 2) * (Fraction(1, 2) + Fraction(2, 4)),
        "worst": Fraction(1, 2) * (Fraction(1, 3) + Fraction(2, 4)),
    }
    for ties, value in expected.items():
        assert values(way, run, "AP", ties=ties) == (pytest.approx(float(value)),)


def test_tied_ndcg_is_the_mean_over_orders(way: Way) -> None:
    pair = table(("a", 2, 0.5), ("b", 0, 0.5))
    assert values(way, pair, "nDCG") == (pytest.approx((1 + LOG3) / 2),)
    three = table(("a", 1, 0.5), ("b", 0, 0.5), ("c", 0, 0.5))
    assert values(way, three, "nDCG") == (pytest.approx((1 + LOG3 + 0.5) / 3),)


def test_half_precision_makes_ties(way: Way) -> None:
    run = table(("a", 1, 0.79112), ("b", 0, 0.79101))
    for dtype, rr in ((pl.Float64, 1.0), (pl.Float32, 1.0), (pl.Float16, 0.75)):
        cast = run.with_columns(pl.col("score").cast(dtype))
        assert values(way, cast, "RR") == (rr,)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12])
def test_tiny_differences_are_differences(scale: float, way: Way) -> None:
    run = table(("a", 0, 2e-9), ("b", 1, 6e-9), ("c", 1, 4e-9))
    assert values(way, run.with_columns(pl.col("score") * scale), "AP", "RR") == (1.0, 1.0)
    near = table(("a", 0, 1.0), ("b", 1, 1.0 + 2**-52))
    assert values(way, near, "RR") == (1.0,)


@pytest.mark.parametrize("size", [40, 1000])
def test_long_ties(size: int, way: Way) -> None:
    run = table(*((f"d{i:04}", int(i == 0), 1.0) for i in range(size)))
    harmonic = sum(1 / i for i in range(1, size + 1))
    for rows in (run, run.reverse()):
        for ties in ("block", "expected"):
            rr, p = values(way, rows, "RR", "P@10", ties=ties)
            assert rr == pytest.approx(harmonic / size, rel=1e-12)
            assert p == pytest.approx(1 / size)
        assert values(way, rows, "AP") == (pytest.approx(1 / size),)
        assert values(way, rows, "RR", ties="best") == (1.0,)
        assert values(way, rows, "RR", "AP", ties="worst") == pytest.approx((1 / size, 1 / size))
        assert values(way, rows, "RR", ties="doc") == (pytest.approx(1 / size),)
    assert values(way, run, "RR", ties="order") == (1.0,)
    assert values(way, run.reverse(), "RR", ties="order") == (pytest.approx(1 / size),)


@pytest.mark.parametrize("size", [40, 1000])
def test_long_ties_of_graded_labels(size: int, way: Way) -> None:
    # All satisfy alike, so the position of the first does not depend on the order.
    run = table(*((f"d{i:04}", 1, 1.0) for i in range(size)))
    expected = sum((1 / 16) * (15 / 16) ** (i - 1) / i for i in range(1, size + 1))
    err, ndcg, ap = values(way, run, "ERR", "nDCG", "AP", ties="expected")
    assert err == pytest.approx(expected, rel=1e-12)
    assert (ndcg, ap) == (pytest.approx(1.0), pytest.approx(1.0))


def test_documents_are_compared_by_bytes(way: Way) -> None:
    # U+FF41 is before U+1F34E in UTF-8 and after it in UTF-16.
    run = table(("\uff41", 1, 1.0), ("\U0001f34e", 0, 1.0))
    assert values(way, run, "RR", ties="doc") == (0.5,)
    for dtype in (pl.Categorical, pl.Enum(["\uff41", "\U0001f34e"])):
        cast = run.with_columns(pl.col("doc_id").cast(dtype))
        assert values(way, cast, "RR", ties="doc") == (0.5,)
    numbers = table(("9", 1, 1.0), ("10", 0, 1.0))
    assert values(way, numbers, "RR", ties="doc") == (1.0,)
    cast = numbers.with_columns(pl.col("doc_id").cast(pl.Int64))
    assert values(way, cast, "RR", ties="doc") == (0.5,)


def test_ties_do_not_push_a_document_below_one_with_a_smaller_score(way: Way) -> None:
    tied = [(f"t{i}", 0, 1.0) for i in range(50)]
    run = table(*tied, ("next", 1, 1.0 - 1e-15))
    for ties in TIES:
        assert values(way, run, "RR", ties=ties) == (pytest.approx(1 / 51),)


def test_rounding_makes_ties(way: Way) -> None:
    run = table(("a", 1, 0.70312), ("b", 0, 0.70309))
    assert values(way, run, "RR") == (1.0,)
    assert values(way, run.with_columns(pl.col("score").round(3)), "RR") == (0.75,)


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Float32, pl.Float64])
@pytest.mark.parametrize("ties", ["block", "best", "worst", "doc"])
def test_one_zero(dtype: Any, ties: str, way: Way) -> None:
    run = table(("a", 0, 0.0), ("b", 1, -0.0), ("c", 0, 0.0), ("d", 1, 0.0))
    plain = run.with_columns(pl.lit(0.0, dtype=dtype).alias("score"))
    signed = run.with_columns(pl.col("score").cast(dtype))
    names = ["RR", "AP", "nDCG", "AUC", "ERR"]
    assert values(way, signed, *names, ties=ties) == values(way, plain, *names, ties=ties)


def test_nothing_is_shuffled(way: Way) -> None:
    run = table(*((f"d{i}", int(i == 2), 0.5) for i in range(5)))
    seen = {values(way, run, "RR", "AP", "nDCG@3") for _ in range(5)}
    assert len(seen) == 1
    assert seen.pop()[0] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5)


# --- nothing relevant, nothing retrieved, nothing judged ------------------------------------------

NEEDS_RELEVANT = ["AP", "AP@3", "RR", "RR@1", "nDCG", "nDCG@3", "R@3", "F@3", "SetR", "SetF"]
NEEDS_RELEVANT += ["Rprec", "RBP", "ERR", "Success@2"]


@pytest.mark.parametrize(("no_relevant", "value"), [("zero", 0.0), ("one", 1.0), ("null", None)])
@pytest.mark.parametrize("label", [0, -1, None])
def test_one_rule_for_nothing_relevant(
    no_relevant: str, value: float | None, label: int | None, way: Way
) -> None:
    run = table(("a", label, 0.3), ("b", label, 0.2), ("c", label, None))
    got = values(way, run, *NEEDS_RELEVANT, no_relevant=no_relevant)
    assert got == tuple([value] * len(NEEDS_RELEVANT))
    defined = values(way, run, "P@2", "SetP", "CG@2", "DCG", "NumRel", no_relevant=no_relevant)
    assert defined == (0.0,) * 5


def test_mean_with_a_query_without_gain(way: Way) -> None:
    frame = pl.concat(
        [table(("a", 0, 2.0), ("b", 0, 1.0)), table(("a", 0, 2.0), ("b", 2, 1.0), query="r")]
    )
    expected = {"zero": LOG3 / 2, "one": (1 + LOG3) / 2, "null": LOG3}
    for no_relevant, value in expected.items():
        assert means(way, frame, "nDCG", no_relevant=no_relevant) == (2, pytest.approx(value))


def test_query_without_judgements(way: Way) -> None:
    frame = pl.concat([table(("a", 1, 1.0)), table(("a", None, 1.0), query="r")])
    assert means(way, frame, "AP", "Judged@1") == (2, 0.5, 0.5)
    assert means(way, frame, "AP", "Judged@1", no_relevant="null") == (2, 1.0, 0.5)


def test_mean_of_no_query_is_null_not_zero(way: Way) -> None:
    frame = pl.concat([table(("a", 0, 1.0)), table(("a", 0, 1.0), query="r")])
    assert means(way, frame, "AP", no_relevant="null") == (2, None)
    assert means(way, frame.clear(), "AP") == (0, None)


def test_nothing_retrieved(way: Way) -> None:
    run = table(("a", 1, None), ("b", 0, None))
    for no_relevant in ("zero", "one", "null", "error"):
        got = values(way, run, *NEEDS_RELEVANT, "P@2", no_relevant=no_relevant)
        assert got == (0.0,) * (len(NEEDS_RELEVANT) + 1)
    assert values(way, run, "NumRet", "NumRel", "AUC", "Judged@5") == (0.0, 1.0, None, 0.0)


@pytest.mark.parametrize("ties", TIES)
def test_single_document(ties: str, way: Way) -> None:
    run = table(("a", 2, 7))
    assert values(way, run, "nDCG", "AP", "RR", "P@1", ties=ties) == (1.0,) * 4
    nothing = run.with_columns(label=0)
    assert values(way, nothing, "nDCG", ties=ties) == (0.0,)
    assert values(way, nothing, "nDCG", ties=ties, no_relevant="one") == (1.0,)


def test_run_and_judgements_share_no_query(way: Way) -> None:
    run, judged = table(("a", None, 2.0)), table(("a", 1, None), query="r")
    frame = pl.concat([run, judged], how="vertical_relaxed")
    assert means(way, frame, "AP", "NumRelRet") == (2, 0.0, 0.0)


# --- missing queries and documents ----------------------------------------------------------------


def test_unanswered_query_counts_in_every_mean(way: Way) -> None:
    frame = pl.concat([table(("a", 1, 1.0)), table(("a", 1, None), query="r")])
    assert means(way, frame, "AP", "P@1", "R@1", "nDCG@1", "RR") == (2, *[0.5] * 5)
    answered = frame.filter(pl.col("score").is_not_null().any().over("query_id"))
    assert means(way, answered, "AP", "P@1", "R@1", "nDCG@1", "RR") == (1, *[1.0] * 5)


def test_ideal_ranking_has_what_was_not_retrieved(way: Way) -> None:
    run = table(("a", 1, 9.0), *((f"m{i}", 1, None) for i in range(3)))
    ideal = 1 + LOG3 + 0.5
    assert values(way, run, "nDCG@3", "nDCG@1") == pytest.approx((1 / ideal, 1.0))


def test_unjudged_documents(way: Way) -> None:
    run = table(("u", None, 5.0), ("n", -1, 4.0), ("z", 0, 3.0), ("u2", None, 2.5), ("a", 1, 2.0))
    assert values(way, run, "AP", "P@1", "RR") == (1 / 5, 0.0, 1 / 5)
    assert values(way, run, "AP", "P@2", "RR", judged_only=True) == (1 / 2, 1 / 2, 1 / 2)
    assert values(way, run, "NumRet", judged_only=True) == (2.0,)


def test_unretrieved_is_not_a_score_of_zero(way: Way) -> None:
    run = table(("a", 0, -1.5), ("b", 1, None), ("c", 1, -2.5))
    assert values(way, run, "RR", "P@1", "AP") == (0.5, 0.0, 0.25)


# --- duplicates -----------------------------------------------------------------------------------


def test_duplicate_documents_are_refused_where_documents_are_read(way: Way) -> None:
    run = table(("a", 1, 2.0), ("a", 1, 1.0), ("b", 0, 0.5))
    for function in (
        lambda f: f.rankeval.check(),
        lambda f: f.rankeval.per_query("AP", ties="doc"),
        lambda f: f.rankeval.evaluate("AP", ties="doc"),
    ):
        with pytest.raises(rk.RankEvalError, match="1 pair of query and document in 2 rows"):
            way(run, function)


def test_conflicting_labels_of_a_document_are_refused(way: Way) -> None:
    run = table(("a", 1, 2.0), ("a", 0, 2.0))
    with pytest.raises(rk.RankEvalError, match="document 'a' of query 'q'"):
        way(run, lambda f: f.rankeval.check())


# --- cutoffs --------------------------------------------------------------------------------------


def test_recall_is_divided_by_all_relevant(way: Way) -> None:
    run = table(("a", 1, 3.0), ("x", 0, 2.0), ("b", 1, None), ("c", 1, None), ("d", 1, None))
    assert values(way, run, "R@1", "R@2", "R@10", "Success@1") == (0.25, 0.25, 0.25, 1.0)


def test_short_lists_are_not_forgiven(way: Way) -> None:
    run = table(("a", 1, 2.0), ("b", 0, 1.0), ("c", 1, None), ("d", 1, None), ("e", 1, None))
    assert values(way, run, "P@5", "Rprec", "SetP") == (0.2, 0.25, 0.5)


def test_cut_and_uncut_are_two_measures(way: Way) -> None:
    run = table(*((f"d{i:02}", int(i == 11), -i) for i in range(1, 13)))
    assert values(way, run, "RR@10", "RR", "RR@11", "AP@10") == (0.0, 1 / 11, 1 / 11, 0.0)


def test_cutoffs_in_any_order(way: Way) -> None:
    run = table(("a", 3, 1), ("b", 2, 3), ("c", 0, 2))
    cuts = [3, 1, 10, 2]
    together = values(way, run, *(f"nDCG(gain=exp2)@{k}" for k in cuts))
    alone = [values(way, run, f"nDCG(gain=exp2)@{k}")[0] for k in cuts]
    assert list(together) == alone
    gain = [3 / 7, 3 / (7 + 3 * LOG3), (3 + 7 / 2) / (7 + 3 * LOG3)]
    assert alone == pytest.approx([gain[2], gain[0], gain[2], gain[1]])


def test_a_measure_can_be_used_again(way: Way) -> None:
    measure: Any = rk.Measure("nDCG", 2)
    run = table(("b", None, 2.0), ("a", 1, 1.0), ("c", 1, 0.5))
    first, second = values(way, run, measure), values(way, run, measure)
    assert first == second == (pytest.approx(LOG3 / (1 + LOG3)),)


@pytest.mark.parametrize("name", ["ndcg@10", "ndcg_cut_10", "ndcg_cut.10", "nDCG@10", "NDCG@10"])
def test_spellings_of_one_measure(name: str, way: Way) -> None:
    run = table(("b", None, 2.0), ("a", 1, 1.0))
    result = way(run, lambda f: f.rankeval.per_query(name))
    assert result.columns == ["query_id", "nDCG@10"]
    assert result["nDCG@10"].item() == pytest.approx(LOG3)


def test_cutoff_beyond_the_list(way: Way) -> None:
    run = table(("a", 1, 0), ("b", 0, 1))
    assert values(way, run, "nDCG@10", "P@10", "R@10", "AP@10") == pytest.approx(
        (LOG3, 0.1, 1.0, 0.5)
    )
    assert values(way, run, f"R@{10**9}", f"DCG@{10**9}") == pytest.approx((1.0, LOG3))


def test_ideal_ranking_has_no_more_relevant_documents_than_there_are(way: Way) -> None:
    run = table(("a", 1, 3.0), ("b", 0, 2.0), ("c", 0, 1.0))
    assert values(way, run, "nDCG@3", "nDCG@2") == (1.0, 1.0)


# --- gains and labels -----------------------------------------------------------------------------


def test_linear_and_exponential_gain(way: Way) -> None:
    run = table(("b", 1, 3.0), ("c", 0, 2.0), ("a", 3, 1.0))
    expected = (1 + 3 / 2) / (3 + LOG3), (1 + 7 / 2) / (7 + LOG3)
    assert values(way, run, "nDCG", "nDCG(gain=exp2)") == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int32, pl.Int64, pl.Float32, pl.Float64])
def test_large_labels_do_not_wrap(dtype: Any, way: Way) -> None:
    run = table(("a", 63, 1), ("b", 100, 2), ("c", 127, 3)).with_columns(
        pl.col("label").cast(dtype)
    )
    cg, linear, ndcg = values(way, run, "CG(gain=exp2)", "CG", "nDCG(gain=exp2)")
    assert cg == pytest.approx(2.0**127 + 2.0**100 + 2.0**63)
    assert (linear, ndcg) == (290.0, 1.0)


def test_many_small_labels_do_not_wrap(way: Way) -> None:
    run = table(*((f"d{i}", 120, 1.0) for i in range(3000))).with_columns(
        pl.col("label").cast(pl.Int8)
    )
    assert values(way, run, "CG", "NumRel", "P@3000") == (360_000.0, 3000.0, 1.0)


def test_fractional_labels_are_gains(way: Way) -> None:
    run = table(("a", 1.75, 1.0), ("b", 0.5, 2.0))
    ndcg, rr, ap = values(way, run, "nDCG", "RR", "AP(rel=1)")
    assert ndcg == pytest.approx((0.5 + 1.75 * LOG3) / (1.75 + 0.5 * LOG3))
    assert (rr, ap) == (1.0, 0.5)


@pytest.mark.parametrize(
    "dtype", [pl.Float16, pl.Float32, pl.Float64, pl.Decimal(10, 2), pl.Decimal(3, 1)], ids=str
)
@pytest.mark.parametrize("rel", [0.1, 0.3, 0.5, 0.7])
def test_a_fractional_level_is_the_same_in_all_terms(dtype: Any, rel: float, way: Way) -> None:
    # 0.7 is less than itself after a trip through Float32: R and the hits must agree on it.
    run = table(("a", Decimal("0.7"), 2.0), ("b", Decimal("0.3"), 1.0), ("c", Decimal("0.1"), 0.5))
    run = run.with_columns(pl.col("label").cast(dtype))
    names = [f"{name}(rel={rel})" for name in ("NumRel", "NumRelRet", "SetR", "AP")]
    relevant, retrieved, recall, ap = values(way, run, *names)
    assert relevant == retrieved
    assert recall == (1.0 if relevant else 0.0)
    assert ap == recall
    expression = way(run, lambda f: f.select(rk.average_precision("label", "score", rel=rel)))
    assert expression.item() == ap


def test_err_depends_on_the_largest_label(way: Way) -> None:
    run = table(("a", 1, 2), ("b", 2, 1))
    expected = {m: 1 / 2**m + (1 - 1 / 2**m) * (3 / 2**m) / 2 for m in (2, 3, 4, 10)}
    names = [f"ERR(max_label={m})@2" for m in expected]
    assert values(way, run, *names) == pytest.approx(tuple(expected.values()))
    assert values(way, run, "ERR@2") == pytest.approx((expected[4],))
    with pytest.raises(rk.RankEvalError, match="max_label=1 in 1 row"):
        values(way, run, "ERR(max_label=1)")


def test_queries_have_any_name(way: Way) -> None:
    for query in ("qa", "#1", "", " ", "日本", "x" * 10_000, "a\tb\nc"):
        run = table(("x", 0, 3.0), ("y", 1, 2.0), query=query)
        result = way(run, lambda f: f.rankeval.per_query("ERR@2"))
        assert result.rows() == [(query, 1 / 32)]


def test_level_of_relevance(way: Way) -> None:
    run = table(("a", 1, 2.0), ("b", 2, 1.0))
    assert values(way, run, "AP(rel=2)", "AP", "RR(rel=2)", "NumRel(rel=2)") == (0.5, 1, 0.5, 1)
    with pytest.raises(rk.RankEvalError, match="no parameter 'rel'"):
        values(way, run, "nDCG(rel=2)")


def test_text_labels_are_refused(way: Way) -> None:
    run = table(("a", "no", 0.1), ("b", "yes", 0.9))
    with pytest.raises(rk.RankEvalError, match="label column 'label' has dtype String"):
        values(way, run, "AP")
    told = run.with_columns(pl.col("label") == "yes")
    assert values(way, told, "AP") == (1.0,)


def test_negative_labels_have_no_gain(way: Way) -> None:
    run = table(("a", -2, 3.0), ("b", 1, 2.0), ("c", -1, None))
    assert values(way, run, "CG", "DCG", "nDCG", "NumRel") == pytest.approx((1, LOG3, LOG3, 1))
    assert values(way, run, "Judged@2", "Judged@1") == (0.5, 0.0)


# --- NaN, infinity, text --------------------------------------------------------------------------


@pytest.mark.parametrize("doc", ["a", "z"])
@pytest.mark.parametrize("label", [0, 1])
def test_nan_scores_have_no_place(doc: str, label: int, way: Way) -> None:
    run = table((doc, label, NAN), ("b", 0, 2.0), ("c", 1, INF))
    for rows in (run, run.reverse()):
        for ties in TIES:
            with pytest.raises(rk.RankEvalError, match="score column 'score' is NaN in 1 row"):
                values(way, rows, "RR", ties=ties)
    filled = run.with_columns(pl.col("score").fill_nan(None))
    assert values(way, filled, "RR") == (1.0,)


def test_nan_labels_are_refused(way: Way) -> None:
    for label in (NAN, INF, -INF):
        with pytest.raises(rk.RankEvalError, match="label column 'label' is NaN or infinite"):
            values(way, table(("a", label, 1.0), ("b", 1.0, 2.0)), "nDCG")


def test_infinite_scores_are_scores(way: Way) -> None:
    run = table(("a", 1, INF), ("b", 0, 2.0), ("c", 1, -INF), ("d", 0, -1e308), ("e", 1, INF))
    assert values(way, run, "RR", "P@2", "AP") == pytest.approx((1.0, 1.0, (1 + 1 + 3 / 5) / 3))
    blocks = way(run, lambda f: f.rankeval.tie_blocks())
    assert blocks["score"].to_list() == [INF, 2.0, -1e308, -INF]
    assert blocks["size"].to_list() == [2, 1, 1, 1]


def test_text_scores_are_refused(way: Way) -> None:
    with pytest.raises(rk.RankEvalError, match="score column 'score' has dtype String"):
        values(way, table(("a", 1, "9.0"), ("b", 0, "10.0")), "RR")


def test_integers_beyond_doubles_are_told_apart(way: Way) -> None:
    run = table(("a", 0, 2**53), ("b", 1, 2**53 + 1))
    for dtype in (pl.Int64, pl.UInt64, pl.Int128, pl.Decimal(38, 0)):
        cast = run.with_columns(pl.col("score").cast(dtype))
        for ties in ("block", "best", "worst", "doc", "order"):
            assert values(way, cast, "RR", ties=ties) == (1.0,)
        expression = way(cast, lambda f: f.select(rk.reciprocal_rank("label", "score")))
        assert expression.item() == 1.0


# --- aggregation ----------------------------------------------------------------------------------


def test_mean_of_f_is_not_f_of_means(way: Way) -> None:
    frame = pl.concat(
        [
            table(("a", 1, 1.0), ("b", 1, None), ("c", 1, None)),
            table(("a", 1, 3.0), ("b", 0, 2.0), ("c", 0, 1.0), query="r"),
        ]
    )
    _, p, r, f = means(way, frame, "SetP", "SetR", "SetF")
    assert (p, r, f) == pytest.approx((2 / 3, 2 / 3, 1 / 2))
    assert f != pytest.approx(2 * p * r / (p + r))


def test_every_query_counts_once_unless_weighted(way: Way) -> None:
    frame = pl.concat(
        [
            table(("x", 0, 3.0), ("a", 1, 2.0)),
            table(("a", 1, 3.0), ("b", 1, 2.0), ("c", 1, 1.0), query="r"),
        ]
    ).with_columns(r=(pl.col("label") > 0).sum().over("query_id"))
    assert means(way, frame, "AP") == (2, pytest.approx(3 / 4))
    assert means(way, frame, "AP", weight="r") == (2, pytest.approx(7 / 8))


def test_nothing_is_dropped_from_the_mean_in_silence(way: Way) -> None:
    # A null in the mean comes from no_relevant="null" alone; a failed query raises.
    frame = pl.concat([table(("a", 1, 1.0)), table(("a", 1, NAN), query="r")])
    with pytest.raises(rk.RankEvalError, match="NaN in 1 row, for example in query 'r'"):
        means(way, frame, "AP")


def test_values_are_not_rounded(way: Way) -> None:
    run = table(("a", 0, 3), ("b", 0, 2), ("c", 1, 1))
    assert values(way, run, "RR") == (1 / 3,)
    assert means(way, run, "RR") == (1, 1 / 3)


def test_repeated_calls_agree(way: Way) -> None:
    frame = pl.concat(
        table(*((f"d{i}", (i * q) % 3, (i * 7 + q) % 11) for i in range(20)), query=f"q{q}")
        for q in range(40)
    )
    first, *others = (means(way, frame, "AP", "nDCG@10", "RR") for _ in range(5))
    for other in others:
        assert other == pytest.approx(first, abs=1e-12)


# --- identifiers ----------------------------------------------------------------------------------


def test_lookalikes_are_different_queries(way: Way) -> None:
    queries = ["caf\u00e9", "cafe\u0301", "CAFE", "cafe", "cafe ", "007", "7"]
    frame = pl.concat(table(("a", 1, 1.0), query=query) for query in queries)
    result = way(frame, lambda f: f.rankeval.per_query("AP"))
    assert sorted(result["query_id"]) == sorted(queries)
