"""trec_eval's names of measures and of their parameters, in its order: `P.5,10`, `ndcg.1=3,2=9`, `iprec_at_recall_0.10`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polars_rankeval.errors import RankEvalError


@dataclass(frozen=True)
class TrecMeasure:
    """One number of trec_eval: how it calls it, and the measure and parameters that give it here."""

    line: str
    name: str
    params: dict[str, Any]


@dataclass(frozen=True)
class TrecName:
    """A name that trec_eval knows, and what its parameters mean."""

    #: the measure here
    name: str
    #: from the text of each parameter, or of all, to parameters of the measure
    read: Callable[[str], dict[str, Any]] | None = None
    #: each parameter makes a measure of its own, printed as `name_parameter`
    each: bool = False
    #: how one of them is printed
    label: Callable[[Any], str] = str
    #: parameters where none are given
    default: str = ""


def _cutoff(text: str) -> dict[str, Any]:
    # As C reads a whole number: up to what is none, so that 23.4 is 23.
    return {"k": int(float(text))}


def _gains(text: str) -> dict[str, Any]:
    pairs = [part.partition("=") for part in text.split(",")]
    p = [float(value) for name, _, value in pairs if name == "p"]
    gains = tuple((int(name), float(value)) for name, _, value in pairs if name != "p")
    return {**({"gains": gains} if gains else {}), **({"p": p[-1]} if p else {})}


def _utility(text: str) -> dict[str, Any]:
    values = [float(part) for part in text.split(",")]
    if len(values) != 4:
        msg = f"utility takes four coefficients, as in utility.1,-1,0,0, got {text!r}"
        raise RankEvalError(msg)
    return dict(zip(("found", "noise", "missed", "rest"), values, strict=True))


def _points(text: str) -> dict[str, Any]:
    return {"points": tuple(sorted(float(part) for part in text.split(",")))}


def _two(value: float) -> str:
    return f"{value:3.2f}"


_CUTS = "5,10,15,20,30,100,200,500,1000"
_TENTHS = "0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1"


def _cut(name: str, default: str = _CUTS) -> TrecName:
    return TrecName(name, _cutoff, each=True, default=default)


#: In the order in which trec_eval prints them.
TREC: dict[str, TrecName] = {
    "num_q": TrecName("NumQ"),
    "num_ret": TrecName("NumRet"),
    "num_rel": TrecName("NumRel"),
    "num_rel_ret": TrecName("NumRelRet"),
    "map": TrecName("AP"),
    "gm_map": TrecName("GMAP"),
    "Rprec": TrecName("Rprec"),
    "bpref": TrecName("Bpref"),
    "recip_rank": TrecName("RR"),
    "iprec_at_recall": TrecName(
        "iprec_at_recall", lambda x: {"recall": float(x)}, each=True, label=_two, default=_TENTHS
    ),
    "P": _cut("P"),
    "recall": _cut("R"),
    "infAP": TrecName("infAP"),
    "gm_bpref": TrecName("GMBpref"),
    "Rprec_mult": TrecName(
        "Rprec_mult",
        lambda x: {"times": float(x)},
        each=True,
        label=_two,
        default=".2,.4,.6,.8,1,1.2,1.4,1.6,1.8,2",
    ),
    "utility": TrecName("utility", _utility),
    "11pt_avg": TrecName("11pt_avg", _points),
    "binG": TrecName("binG"),
    "G": TrecName("G", _gains),
    "dcg": TrecName("DCG", _gains),
    "ideal_dcg": TrecName("IDCG", _gains),
    "ndcg": TrecName("nDCG", _gains),
    "ndcg_rel": TrecName("ndcg_rel", _gains),
    "Rndcg": TrecName("Rndcg", _gains),
    "ndcg_cut": _cut("nDCG"),
    "map_cut": _cut("AP"),
    "relative_P": _cut("relative_P"),
    "success": _cut("Success", "1,5,10"),
    "set_P": TrecName("SetP"),
    "set_relative_P": TrecName("SetRelP"),
    "set_recall": TrecName("SetR"),
    "set_map": TrecName("SetAP"),
    # trec_eval weighs recall with x, where F squares beta.
    "set_F": TrecName("SetF", lambda x: {"beta": math.sqrt(float(x))}),
    "num_nonrel_judged_ret": TrecName("num_nonrel_judged_ret"),
    "yaap": TrecName("yaap"),
    "rbp": TrecName("rbp", _gains),
    "rbp_resid": TrecName("rbp_resid"),
    "unj": _cut("unj", "5,10,20"),
}


def trec_measures(name: str, parameters: str | None) -> list[TrecMeasure]:
    """The numbers that trec_eval prints for a name, given the text of its parameters, or its defaults.

    Raises
    ------
    RankEvalError
        If the measure takes no parameters, or they cannot be read.
    """
    known = TREC[name]
    if known.read is None:
        if parameters:
            msg = f"{name} takes no parameters, got {parameters!r}"
            raise RankEvalError(msg)
        return [TrecMeasure(name, known.name, {})]
    if parameters is None and not known.each:
        return [TrecMeasure(name, known.name, {})]
    text = known.default if parameters is None else parameters
    try:
        if not known.each:
            return [TrecMeasure(f"{name}_{text}", known.name, known.read(text))]
        params = [known.read(part) for part in text.split(",")]
    except RankEvalError:
        raise
    except (ValueError, OverflowError):
        msg = f"cannot read the parameters of {name}: {text!r}"
        raise RankEvalError(msg) from None
    params.sort(key=lambda p: float(next(iter(p.values()))))
    values = [next(iter(p.values())) for p in params]
    if len(set(values)) < len(values):
        msg = f"{name}: a parameter stands twice in {text!r}"
        raise RankEvalError(msg)
    return [
        TrecMeasure(f"{name}_{known.label(v)}", known.name, p)
        for v, p in zip(values, params, strict=True)
    ]
