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
from polars_rankeval.measures import cascade, precision, thresholds, trec, weighted
from polars_rankeval.measures.trec_names import TREC, trec_measures
from polars_rankeval.table import number
from polars_rankeval.terms import POOLED, Level, Terms


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

_GRAMMAR = re.compile(
    r"\s*(?P<name>11pt_avg|[A-Za-z][A-Za-z_]*?)\s*(?:\(\s*(?P<params>[^()]*)\))?\s*(?:@\s*(?P<k>\S+)|[_.](?P<trec>[-.\dp][-.\d,=p]*))?\s*"
)
#: Names of trec_eval, by which their parameters are read.
_TREC_NAMES = {name.lower(): name for name in TREC}


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
        known = (
            _EXACT.get(name.strip(), _KNOWN.get(name.lower().strip()))
            if isinstance(name, str)
            else None
        )
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
        params = {parameter: _structured(value) for parameter, value in params.items()}
        needed = "k" if takes_k(known) and _required(known, "k") and k is None else SPECS[known].at
        if needed == "k" or (needed is not None and needed not in params):
            msg = f"{known} needs a number behind it, as in {known}@{5 if needed == 'k' else 0.5}"
            raise RankEvalError(msg)
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
        if "gains" in params and params.get("gain") == "exp2":
            msg = (
                f"{known}: gains= says what labels gain, gain=exp2 something else: give one of them"
            )
            raise RankEvalError(msg)
        if known == "rbp" and any(g < 0 for _, g in params.get("gains", ())):
            msg = "rbp: a gain must be at least 0"
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
        try:
            return cls._of(match)
        except RankEvalError as error:
            msg = str(error) if repr(match["name"]) in str(error) else f"measure {text!r}: {error}"
            raise RankEvalError(msg) from None

    @classmethod
    def _of(cls, match: re.Match[str]) -> Measure:
        name, params = match["name"], _parse_params(match["params"])
        if match["trec"]:
            trec = _TREC_NAMES.get(name.lower())
            if trec is not None:
                several = trec_measures(trec, match["trec"])
                if len(several) > 1:
                    msg = f"these are {len(several)} measures: name them one by one, or pass the text to per_query or evaluate"
                    raise RankEvalError(msg)
                return cls(several[0].name, **several[0].params, **params)
        behind = match["k"] or match["trec"]
        if behind is None:
            return cls(name, **params)
        known = _EXACT.get(name, _KNOWN.get(name.lower()))
        at = SPECS[known].at if known is not None else None
        if at is not None:
            try:
                return cls(name, **{**params, at: _parse_number(behind)})
            except (ValueError, OverflowError):
                msg = f"{at} must be {PARAMETERS[at][0]}, got {behind!r}"
                raise RankEvalError(msg) from None
        if not re.fullmatch(r"\d+", behind) or int(behind) < 1:
            msg = f"a cutoff is a whole number of at least 1, got {behind!r}"
            raise RankEvalError(msg)
        return cls(name, int(behind), **params)

    def __str__(self) -> str:
        at = SPECS[self.name].at
        behind = self.k if at is None else dict(self.params)[at]
        inside = ", ".join(f"{p}={_shown(value)}" for p, value in self.params if p != at)
        return (
            self.name
            + (f"({inside})" if inside else "")
            + (f"@{behind}" if behind is not None else "")
        )

    def __repr__(self) -> str:
        return f"Measure({str(self)!r})"

    @property
    def level(self) -> Level:
        """Which rows count: label > 0, or label >= this."""
        level = SPECS[self.name].level
        if not SPECS[self.name].rel:
            # A label that is not above 0 counts if it is given a gain, a negative one perhaps.
            level = min((label for label, _ in self._gains if label <= 0), default=level)
        return dict(self.params).get("rel", level)

    @property
    def lowest_level(self) -> Level:
        """The lowest level whose rows the formula reads; None for labels above 0."""
        levels = [self.level, SPECS[self.name].reads, *(x for x, _ in self._gains if x <= 0)]
        return min((x for x in levels if x is not None and x <= 0), default=None)

    @property
    def strict(self) -> bool:
        """Whether it needs a policy that gives each row a position of its own."""
        return SPECS[self.name].strict

    @property
    def geometric(self) -> bool:
        """Whether its mean over queries is a geometric one."""
        return SPECS[self.name].geometric

    @property
    def _gains(self) -> tuple[tuple[float, float], ...]:
        gains: tuple[tuple[float, float], ...] = dict(self.params).get("gains", ())
        return gains

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
            return weighted.ideal_dcg(terms, k=self.k, gain=gain, gains=self._gains) <= 0
        if self.name in ("G", "ndcg_rel"):
            return trec.ideal_gain(terms, self._gains) <= 0
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
            parsed.update(dict.fromkeys(_expanded(measure)))
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


def _expanded(measure: str | Measure) -> list[Measure]:
    """One measure, or the several that trec_eval's way of writing means: `P.5,10`, `iprec_at_recall`."""
    match = _GRAMMAR.fullmatch(measure) if isinstance(measure, str) else None
    name = _TREC_NAMES.get(match["name"].lower()) if match and not match["params"] else None
    if match is None or name is None or match["k"] or not TREC[name].each:
        return [Measure.parse(measure)]
    if match["trec"] is None and (TREC[name].name != name or SPECS[name].uncut):
        return [Measure.parse(measure)]  # `P` and `recall` are set measures where they stand alone
    try:
        several = trec_measures(name, match["trec"])
        return [Measure(m.name, **m.params) for m in several]
    except RankEvalError as error:
        msg = f"measure {measure!r}: {error}"
        raise RankEvalError(msg) from None


def _required(name: str, parameter: str) -> bool:
    known = signature(SPECS[name].formula).parameters[parameter]
    return known.default is known.empty


def _structured(value: Any) -> Any:
    """Gains and points as tuples, from dicts, lists, or their text: `1:3;2:9`, `0.2;0.5`."""
    if (
        isinstance(value, str)
        and re.fullmatch(r"[-+.\d:;eE ]+", value)
        and re.search("[:;]", value)
    ):
        try:
            parts = [tuple(_parse_number(x) for x in part.split(":")) for part in value.split(";")]
        except ValueError:
            return value
        return tuple(parts) if ":" in value else tuple(x for (x,) in parts)
    if isinstance(value, dict):
        return tuple((_plain(x), _plain(y)) for x, y in value.items())
    if isinstance(value, list | tuple):
        return tuple(
            tuple(map(_plain, x)) if isinstance(x, list | tuple) else _plain(x) for x in value
        )
    return value


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ";".join(":".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in value)
    return str(value)


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
