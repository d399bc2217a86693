"""The registry: which formula each name of a measure stands for, its other spellings, and what its parameters may be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

import polars as pl

from polars_rankeval._typing import GAINS
from polars_rankeval.measures import cascade, compatibility, precision, thresholds, trec, weighted
from polars_rankeval.table import number
from polars_rankeval.terms import POOLED, Level


@dataclass(frozen=True)
class Spec:
    """How a name is computed: its formula, whose keyword parameters are the parameters of the measure."""

    formula: Callable[..., pl.Expr]
    #: takes `rel`, the least label that is relevant
    rel: bool = True
    #: a query without relevant rows makes it undefined, so `no_relevant` decides
    undefined: bool = True
    #: level that replaces label > 0
    level: Level = None
    #: the measure this becomes without a cutoff
    uncut: str | None = None
    #: rows may have weights
    weights: bool = False
    #: the lowest level that the formula reads beside its own
    reads: Level = None
    #: needs a policy that gives each row a position of its own
    strict: bool = False
    #: the parameter that stands behind @, where it is not the cutoff
    at: str | None = None
    #: the mean over queries is a geometric one
    geometric: bool = False


SPECS: dict[str, Spec] = {
    "AP": Spec(precision.average_precision, weights=True),
    "RR": Spec(cascade.reciprocal_rank),
    "nDCG": Spec(weighted.ndcg, rel=False),
    "P": Spec(weighted.precision, undefined=False, uncut="SetP"),
    "R": Spec(weighted.recall, uncut="SetR"),
    "F": Spec(weighted.f_score, uncut="SetF"),
    "Rprec": Spec(weighted.r_precision),
    "Success": Spec(cascade.success),
    "CG": Spec(weighted.cg, rel=False, undefined=False),
    "DCG": Spec(weighted.dcg, rel=False, undefined=False),
    "RBP": Spec(weighted.rbp),
    "ERR": Spec(cascade.err, rel=False),
    "AUC": Spec(precision.auc, undefined=False, weights=True),
    "PRTrapezoid": Spec(thresholds.pr_trapezoid, weights=True),
    "MaxF": Spec(thresholds.max_f, weights=True),
    "PrecisionAtRecall": Spec(thresholds.precision_at_recall, weights=True),
    "RecallAtPrecision": Spec(thresholds.recall_at_precision, weights=True),
    "Judged": Spec(weighted.judged, rel=False, undefined=False, level=0),
    "SetP": Spec(weighted.set_precision, undefined=False),
    "SetR": Spec(weighted.set_recall),
    "SetF": Spec(weighted.set_f),
    "NumRet": Spec(weighted.retrieved_count, rel=False, undefined=False),
    "NumRel": Spec(weighted.relevant_count, undefined=False),
    "NumRelRet": Spec(weighted.relevant_retrieved_count, undefined=False),
    "NumQ": Spec(trec.query_count, rel=False, undefined=False),
    "IPrec": Spec(precision.interpolated_precision, at="recall"),
    "Bpref": Spec(trec.bpref, reads=0, strict=True),
    "infAP": Spec(trec.inferred_average_precision, reads=POOLED, strict=True),
    "GMAP": Spec(precision.average_precision, geometric=True),
    "GMBpref": Spec(trec.bpref, reads=0, strict=True, geometric=True),
    "SetAP": Spec(trec.set_average_precision),
    "SetRelP": Spec(trec.set_relative_precision),
    "Accuracy": Spec(trec.accuracy, undefined=False, strict=True),
    "Compat": Spec(compatibility.compatibility, rel=False, strict=True),
    "IDCG": Spec(weighted.ideal_dcg, rel=False, undefined=False),
    "iprec_at_recall": Spec(trec.interpolated_by_count, strict=True, at="recall"),
    "11pt_avg": Spec(trec.interpolated_mean, strict=True),
    "Rprec_mult": Spec(trec.r_precision_multiple, strict=True, at="times"),
    "relative_P": Spec(trec.relative_precision, strict=True),
    "binG": Spec(trec.binary_gain, strict=True),
    "G": Spec(trec.gain, rel=False, strict=True),
    "ndcg_rel": Spec(trec.ndcg_at_relevant, rel=False, strict=True),
    "Rndcg": Spec(trec.ndcg_at_levels, strict=True),
    "utility": Spec(trec.utility, undefined=False),
    "unj": Spec(trec.unjudged, rel=False, undefined=False, reads=0, strict=True),
    "yaap": Spec(trec.smoothed_average_precision, undefined=False, strict=True),
    "rbp": Spec(trec.graded_rbp, rel=False, strict=True),
    "rbp_resid": Spec(trec.rbp_residual, rel=False, undefined=False, reads=0, strict=True),
    "num_nonrel_judged_ret": Spec(trec.judged_nonrelevant_count, undefined=False, reads=0),
}

#: Other spellings, in lower case. A cutoff or a parameter may follow, as behind the name itself.
ALIASES: dict[str, str] = {
    "map": "AP",
    "map_cut": "AP",
    "average_precision": "AP",
    "mrr": "RR",
    "recip_rank": "RR",
    "reciprocal_rank": "RR",
    "ndcg_cut": "nDCG",
    "precision": "P",
    "recall": "R",
    "r_precision": "Rprec",
    "rprecision": "Rprec",
    "hitrate": "Success",
    "hit_rate": "Success",
    "set_p": "SetP",
    "set_recall": "SetR",
    "set_f": "SetF",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "num_q": "NumQ",
    "gm_map": "GMAP",
    "gm_bpref": "GMBpref",
    "set_map": "SetAP",
    "set_relative_p": "SetRelP",
    "ideal_dcg": "IDCG",
}

#: Names that differ by their case alone are told apart.
_EXACT = {"rbp": "rbp", "RBP": "RBP"}
_KNOWN = {name.lower(): name for name in SPECS if name != "rbp"} | ALIASES


def canonical(text: str) -> str | None:
    """The measure that goes by a name or an alias."""
    text = text.strip()
    return _EXACT.get(text, _KNOWN.get(text.lower()))


def suggestion(text: str) -> str:
    """What to say behind a name that is not known: the nearest that are."""
    # Only a failure needs difflib.
    from difflib import get_close_matches

    word = re.split(r"[^A-Za-z_]", text.strip())[0].lower().rstrip("_")
    near = dict.fromkeys(_KNOWN[m] for m in get_close_matches(word, _KNOWN, n=5, cutoff=0.5))
    if not near:
        return f"; known: {', '.join(SPECS)}"
    return f"; did you mean {' or '.join(list(near)[:3])}?"


#: For each parameter: what it must be, in words and as a test.
PARAMETERS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "rel": ("a number above 0", lambda v: number(v, 0)),
    "gain": ("linear or exp2", lambda v: v in GAINS),
    "beta": ("a number above 0", lambda v: number(v, 0)),
    "p": ("a number above 0, and below 1", lambda v: number(v, 0) and v < 1),
    "RecallAtPrecision.p": ("a number above 0, at most 1", lambda v: number(v, 0) and v <= 1),
    "r": ("a number above 0, at most 1", lambda v: number(v, 0) and v <= 1),
    "max_label": ("a number above 0", lambda v: number(v, 0)),
    "discount": ("reciprocal or log2", lambda v: v in ("reciprocal", "log2")),
    "recall": ("a number from 0 to 1", lambda v: number(v) and v >= 0 and v <= 1),
    "points": (
        "numbers from 0 to 1, as in points=0.2;0.5;0.8",
        lambda v: (
            bool(v) and isinstance(v, tuple) and all(number(x) and x >= 0 and x <= 1 for x in v)
        ),
    ),
    "times": ("a number above 0", lambda v: number(v, 0)),
    "gains": (
        "a gain for each of some labels, as in gains=1:3;2:9",
        lambda v: (
            bool(v)
            and isinstance(v, tuple)
            and all(isinstance(x, tuple) and len(x) == 2 and all(map(number, x)) for x in v)
        ),
    ),
    "normalize": ("true or false", lambda v: isinstance(v, bool)),
    "version": ("9 or 10", lambda v: v in (9, 10)),
    **dict.fromkeys(
        ("found", "noise", "missed", "rest", "collection"), ("a finite number", number)
    ),
}


@cache
def parameters(name: str) -> dict[str, Any]:
    """The parameters of a measure other than k, in the order in which its name shows them, and their defaults."""
    spec = SPECS[name]
    own = {
        p.name: p.default
        for p in signature(spec.formula).parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.name != "k"
    }
    return {"rel": None, **own} if spec.rel else own


def takes_k(name: str) -> bool:
    """Whether a measure has a cutoff."""
    return "k" in signature(SPECS[name].formula).parameters


def required(name: str) -> list[str]:
    """The parameters that a measure cannot do without, `k` among them."""
    own = signature(SPECS[name].formula).parameters.values()
    return [p.name for p in own if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
