"""`Measure`: the name of a measure and its parameters; parsing, aliases, and the registry that ties names to formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from typing import Any

import polars as pl

from polars_rankeval._typing import GAINS, Ties
from polars_rankeval.errors import RankEvalError
from polars_rankeval.measures import cascade, precision, thresholds, weighted
from polars_rankeval.table import number
from polars_rankeval.terms import Level, Terms


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
}

_KNOWN = {name.lower(): name for name in SPECS} | ALIASES

_GRAMMAR = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z_]*?)\s*(?:\(\s*(?P<params>[^()]*)\))?\s*(?:@\s*(?P<k>\S+)|[_.](?P<trec>\d+))?\s*"
)


def _parse_number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


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


@dataclass(frozen=True, init=False)
class Measure:
    """A measure with its parameters; immutable, hashable, equal when the names are.

    Parameters
    ----------
    name
        Name or alias of the measure.
    k
        Cutoff: positions after it are not seen.
    params
        Parameters of the measure: `rel`, `gain`, `beta`, `p`, `max_label`, `discount`.

    Raises
    ------
    RankEvalError
        If the name, a parameter or a value is not known; the message holds the nearest names.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> rk.Measure("nDCG", k=10, gain="exp2")
    Measure('nDCG(gain=exp2)@10')
    >>> str(rk.Measure.parse("ndcg_cut_10"))
    'nDCG@10'
    """

    name: str
    k: int | None
    params: tuple[tuple[str, Any], ...]

    def __init__(self, name: str, k: int | None = None, **params: Any) -> None:
        known = _KNOWN.get(name.lower().strip()) if isinstance(name, str) else None
        if known is None:
            msg = f"unknown measure {name!r}{_suggestion(str(name))}"
            raise RankEvalError(msg)
        if k is None and SPECS[known].uncut is not None:
            known = SPECS[known].uncut or known
        if k is not None:
            if not takes_k(known):
                msg = f"{known} takes no cutoff, got @{k}"
                raise RankEvalError(msg)
            if isinstance(k, bool) or not isinstance(k, int) or k < 1:
                msg = f"{known}: a cutoff is a whole number of at least 1, got {k!r}"
                raise RankEvalError(msg)
        allowed = parameters(known)
        for parameter, value in params.items():
            if parameter not in allowed:
                has = ", ".join(allowed) or "none"
                msg = f"{known} has no parameter {parameter!r} (it has: {has})"
                raise RankEvalError(msg)
            words, fits = PARAMETERS.get(f"{known}.{parameter}", PARAMETERS[parameter])
            if not fits(value):
                msg = f"{known}: {parameter} must be {words}, got {value!r}"
                raise RankEvalError(msg)
        for parameter, default in allowed.items():
            if default is Parameter.empty and parameter not in params:
                msg = f"{known} needs its parameter {parameter}, as in {known}({parameter}=0.9)"
                raise RankEvalError(msg)
        object.__setattr__(self, "name", known)
        object.__setattr__(self, "k", k)
        ordered = tuple((p, _plain(params[p])) for p in allowed if p in params)
        object.__setattr__(self, "params", ordered)

    @classmethod
    def parse(cls, text: str | Measure) -> Measure:
        """Read a name such as `nDCG@10`, `P(rel=2)@5`, `map` or `ndcg_cut_10`.

        Parameters
        ----------
        text
            The name; a `Measure` comes back as it is.

        Returns
        -------
        Measure
            The measure; `str()` of it is its canonical name.

        Raises
        ------
        RankEvalError
            If the text is not the name of a measure.

        Examples
        --------
        >>> import polars_rankeval as rk
        >>> rk.Measure.parse("P(rel=2)@5").k
        5
        """
        if isinstance(text, cls):
            return text
        if not isinstance(text, str):
            msg = f"a measure is a string or a Measure, got {text!r}"
            raise RankEvalError(msg)
        match = _GRAMMAR.fullmatch(text)
        if match is None:
            msg = f"cannot read measure {text!r}: write it as nDCG@10 or P(rel=2)@5{_suggestion(text)}"
            raise RankEvalError(msg)
        cutoff = match["k"] or match["trec"]
        k: int | None = None
        if cutoff is not None:
            if not re.fullmatch(r"\d+", cutoff) or int(cutoff) < 1:
                msg = f"measure {text!r}: a cutoff is a whole number of at least 1, got {cutoff!r}"
                raise RankEvalError(msg)
            k = int(cutoff)
        try:
            return cls(match["name"], k, **_parse_params(match["params"]))
        except RankEvalError as error:
            msg = str(error) if repr(match["name"]) in str(error) else f"measure {text!r}: {error}"
            raise RankEvalError(msg) from None

    def __str__(self) -> str:
        inside = ", ".join(f"{parameter}={value}" for parameter, value in self.params)
        return (
            self.name
            + (f"({inside})" if inside else "")
            + (f"@{self.k}" if self.k is not None else "")
        )

    def __repr__(self) -> str:
        return f"Measure({str(self)!r})"

    @property
    def level(self) -> Level:
        """Which rows count: label > 0, or label >= this."""
        level = SPECS[self.name].level
        return dict(self.params).get("rel", level)

    def value(self, terms: Terms) -> pl.Expr:
        """The value for one query, undefined ones included."""
        keywords = {p: v for p, v in self.params if p != "rel"}
        if takes_k(self.name):
            keywords["k"] = self.k
        return SPECS[self.name].formula(terms, **keywords)

    def undefined(self, terms: Terms) -> pl.Expr | None:
        """Whether the query makes the measure undefined; None if no query can."""
        if not SPECS[self.name].undefined:
            return None
        if self.name == "nDCG":
            gain = dict(self.params).get("gain", "linear")
            return weighted.ideal_dcg(terms, k=self.k, gain=gain) <= 0
        return terms.relevant == 0


def parse_all(measures: Iterable[str | Measure]) -> list[Measure]:
    """Read measures in the order given, each once.

    Raises
    ------
    RankEvalError
        If there is none, or one or more cannot be read: one error lists them all.
    """
    parsed: dict[Measure, None] = {}
    errors: list[str] = []
    for measure in measures:
        try:
            parsed[Measure.parse(measure)] = None
        except RankEvalError as error:
            errors.append(str(error))
    if len(errors) == 1:
        raise RankEvalError(errors[0])
    if errors:
        msg = f"{len(errors)} measures cannot be read:\n" + "\n".join(f"  {e}" for e in errors)
        raise RankEvalError(msg)
    if not parsed:
        msg = 'name at least one measure, such as "AP" or "nDCG@10"'
        raise RankEvalError(msg)
    return list(parsed)


def refuse_weights(measures: Iterable[Measure], ties: Ties) -> None:
    """Refuse weights of rows where they have no meaning.

    Raises
    ------
    RankEvalError
        Unless ties are "block" and all measures are made of precision, recall and false alarms at thresholds.
    """
    if ties != "block":
        msg = f'weights of rows go with ties="block", got ties={ties!r}'
        raise RankEvalError(msg)
    without = [str(m) for m in measures if not SPECS[m.name].weights or m.k is not None]
    if without:
        able = ", ".join(name for name, spec in SPECS.items() if spec.weights)
        msg = (
            f"{', '.join(without)} cannot take weights of rows; without a cutoff these can: {able}"
        )
        raise RankEvalError(msg)


def _parse_params(text: str | None) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, value = (x.strip() for x in part.partition("="))
        if not equals or not value:
            msg = f"write parameters as name=value, got {part.strip()!r}"
            raise RankEvalError(msg)
        if name in params:
            msg = f"parameter {name!r} is given twice"
            raise RankEvalError(msg)
        try:
            params[name] = _parse_number(value)
        except (ValueError, OverflowError):
            params[name] = value.strip("'\"")
    return params


def _plain(value: Any) -> Any:
    """2.0 and 2 are one value, and print alike."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _suggestion(text: str) -> str:
    # Only a failure needs difflib.
    from difflib import get_close_matches

    word = re.split(r"[^A-Za-z_]", text.strip())[0].lower().rstrip("_")
    near: list[str] = []
    for match in get_close_matches(word, _KNOWN, n=5, cutoff=0.5):
        if _KNOWN[match] not in near:
            near.append(_KNOWN[match])
    return f"; did you mean {' or '.join(near[:3])}?" if near else f"; known: {', '.join(SPECS)}"
