"""How measures are written: grammar, aliases, canonical names, equality, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_rankeval as rk
from panel import PANEL, Asked, asked

CANONICAL = [
    "AP",
    "AP@10",
    "AP(rel=2)",
    "AP(rel=2)@10",
    "RR",
    "RR@10",
    "nDCG",
    "nDCG@10",
    "nDCG(gain=exp2)@10",
    "nDCG(gain=linear)",
    "P@5",
    "P(rel=2)@5",
    "P(rel=0.5)@5",
    "R@1000",
    "F@5",
    "F(beta=2)@5",
    "F(rel=2, beta=0.5)@5",
    "Rprec",
    "Success@1",
    "CG@3",
    "DCG",
    "RBP",
    "RBP(p=0.95)@10",
    "RBP(rel=2, p=0.5)",
    "ERR",
    "ERR(max_label=5)@20",
    "ERR(max_label=5, discount=log2)",
    "AUC",
    "Judged@10",
    "SetP",
    "SetR(rel=2)",
    "SetF(beta=2)",
    "NumRet",
    "NumRel",
    "NumRelRet",
]
ALIASES = {
    "map": "AP",
    "map_cut_10": "AP@10",
    "map_cut.10": "AP@10",
    "ndcg": "nDCG",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut.10": "nDCG@10",
    "ndcg@10": "nDCG@10",
    "NDCG@10": "nDCG@10",
    "ndcg_cut@10": "nDCG@10",
    "P_5": "P@5",
    "P.5": "P@5",
    "p@5": "P@5",
    "precision@5": "P@5",
    "recall_100": "R@100",
    "recall.100": "R@100",
    "recall@100": "R@100",
    "success_1": "Success@1",
    "recip_rank": "RR",
    "reciprocal_rank@10": "RR@10",
    "MRR@10": "RR@10",
    "mrr": "RR",
    "Rprec": "Rprec",
    "RPrec": "Rprec",
    "r_precision": "Rprec",
    "HitRate@10": "Success@10",
    "hit_rate@10": "Success@10",
    "set_P": "SetP",
    "set_recall": "SetR",
    "set_F": "SetF",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "auc": "AUC",
    "map(rel=2)": "AP(rel=2)",
    "average_precision": "AP",
}
SPELLINGS = {
    " nDCG @ 10 ": "nDCG@10",
    "nDCG()@10": "nDCG@10",
    "nDCG( gain = exp2 )@10": "nDCG(gain=exp2)@10",
    "nDCG(gain='exp2')@10": "nDCG(gain=exp2)@10",
    'nDCG(gain="exp2")': "nDCG(gain=exp2)",
    "F(beta=0.5,rel=2)@5": "F(rel=2, beta=0.5)@5",
    "F( beta = 0.5 , rel = 2 )@5": "F(rel=2, beta=0.5)@5",
    "AP(rel=2.0)": "AP(rel=2)",
    "AP(rel=2e0)": "AP(rel=2)",
    "AP@010": "AP@10",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_names_stay(text: str) -> None:
    measure = rk.Measure.parse(text)
    assert str(measure) == text
    assert repr(measure) == f"Measure({text!r})"
    assert rk.Measure.parse(measure) is measure


@pytest.mark.parametrize(("text", "canonical"), [*ALIASES.items(), *SPELLINGS.items()])
def test_other_spellings(text: str, canonical: str) -> None:
    assert str(rk.Measure.parse(text)) == canonical
    assert rk.Measure.parse(text) == rk.Measure.parse(canonical)


@pytest.mark.parametrize(
    ("uncut", "canonical"),
    [("P", "SetP"), ("R", "SetR"), ("F(beta=2)", "SetF(beta=2)"), ("recall", "SetR")],
)
def test_without_cutoff_these_are_set_measures(uncut: str, canonical: str) -> None:
    assert str(rk.Measure.parse(uncut)) == canonical


@given(asked())
def test_round_trip(measure: Asked) -> None:
    parsed = rk.Measure.parse(str(measure))
    built = rk.Measure(measure.name, **measure.params)
    assert parsed == built
    assert hash(parsed) == hash(built)
    assert str(parsed) == str(measure)
    assert rk.Measure.parse(str(parsed)) == parsed
    assert pickle.loads(pickle.dumps(parsed)) == parsed


def test_equality() -> None:
    assert len({rk.Measure.parse(str(m)) for m in PANEL}) == len(PANEL)
    assert rk.Measure("nDCG", 10) == rk.Measure.parse("ndcg_cut_10")
    assert rk.Measure("nDCG", 10) != rk.Measure("nDCG", 11)
    assert rk.Measure("nDCG", 10) != rk.Measure("nDCG")
    assert rk.Measure("AP", rel=2.0) == rk.Measure("AP", rel=2)
    assert rk.Measure("F", 5, beta=2, rel=1) == rk.Measure("F", 5, rel=1, beta=2)
    other: Any = "AP"
    assert rk.Measure("AP") != other


def test_parts() -> None:
    measure = rk.Measure.parse("F(beta=2, rel=3)@5")
    assert (measure.name, measure.k, measure.params) == ("F", 5, (("rel", 3), ("beta", 2)))


def test_immutable() -> None:
    measure = rk.Measure("AP")
    with pytest.raises(AttributeError):
        measure.k = 10  # type: ignore[misc]


#: What is refused, and what the message says.
REFUSED: dict[Any, list[str]] = {
    "": ["''"],
    " ": ["cannot read"],
    "@10": ["'@10'", "nDCG@10"],
    "10": ["'10'"],
    "nDGC@10": ["nDGC", "did you mean nDCG"],
    "MPA": ["MPA", "did you mean AP"],
    "xyzzy": ["xyzzy", "known: AP, RR"],
    "nDCG@": ["nDCG@"],
    "nDCG@0": ["nDCG@0", "at least 1"],
    "nDCG@-1": ["nDCG@-1", "at least 1"],
    "nDCG@1.5": ["nDCG@1.5", "whole number"],
    "nDCG@ten": ["nDCG@ten", "whole number"],
    "nDCG@1e1": ["whole number"],
    "nDCG@10@5": ["nDCG@10@5"],
    "nDCG(10)": ["name=value", "'10'"],
    "nDCG(gain)": ["name=value", "'gain'"],
    "nDCG(gain=)": ["name=value"],
    "nDCG(gain=exp2, gain=linear)": ["'gain' is given twice"],
    "nDCG(gain=exp)": ["gain must be linear or exp2", "'exp'"],
    "nDCG(rel=2)": ["nDCG has no parameter 'rel'", "gain"],
    "nDCG(gain=exp2": ["nDCG(gain=exp2"],
    "nDCG gain=exp2)": ["nDCG gain=exp2)"],
    "AP(rel=0)": ["rel must be a number above 0", "0"],
    "AP(rel=-1)": ["rel must be a number above 0"],
    "AP(rel=nan)": ["rel must be a number above 0"],
    "AP(rel=inf)": ["rel must be a number above 0"],
    "AP(rel=high)": ["rel must be a number above 0", "'high'"],
    "RBP(p=1)": ["p must be a number above 0, and below 1, got 1"],
    "RBP(p=0)": ["p must be a number above 0, and below 1, got 0"],
    "F(beta=0)@5": ["beta must be a number above 0"],
    "ERR(max_label=0)": ["max_label must be a number above 0"],
    "ERR(discount=ln)": ["discount must be reciprocal or log2", "'ln'"],
    "ERR(rel=1)": ["ERR has no parameter 'rel'"],
    "Rprec@5": ["Rprec takes no cutoff", "@5"],
    "AUC@5": ["AUC takes no cutoff"],
    "SetP@5": ["SetP takes no cutoff"],
    "NumRel@5": ["NumRel takes no cutoff"],
    "IPrec": ["IPrec needs a number behind it, as in IPrec@0.5"],
    "relative_P": ["relative_P needs a number behind it, as in relative_P@5"],
    "PrecisionAtRecall": ["needs its parameter r, as in PrecisionAtRecall(r=0.9)"],
    "NumRet(rel=1)": ["NumRet has no parameter 'rel'", "none"],
    7: ["a measure is a string or a Measure, got 7"],
    None: ["a measure is a string or a Measure, got None"],
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: Any) -> None:
    with pytest.raises(rk.RankEvalError) as error:
        rk.Measure.parse(text)
    missing = [part for part in REFUSED[text] if part not in str(error.value)]
    assert not missing, str(error.value)


@pytest.mark.parametrize(
    ("args", "params", "part"),
    [
        (("AP", 0), {}, "at least 1"),
        (("AP", True), {}, "whole number"),
        (("AP", 2.0), {}, "whole number"),
        (("AP", "2"), {}, "whole number"),
        (("Average",), {}, "unknown measure 'Average'"),
        ((3,), {}, "unknown measure 3"),
        (("AP",), {"rel": True}, "rel must be a number"),
        (("AP",), {"rel": "2"}, "rel must be a number"),
        (("AP",), {"level": 2}, "no parameter 'level'"),
        (("nDCG",), {"gain": ["exp2"]}, "gain must be"),
    ],
)
def test_refused_parts(args: tuple[Any, ...], params: dict[str, Any], part: str) -> None:
    with pytest.raises(rk.RankEvalError) as error:
        rk.Measure(*args, **params)
    assert part in str(error.value)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        measure = rk.Measure.parse(text)
    except rk.RankEvalError:
        return
    assert rk.Measure.parse(str(measure)) == measure
