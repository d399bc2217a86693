"""`Measure`: the name of a measure and its parameters, checked and in canonical form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_rankeval._typing import Ties
from polars_rankeval.errors import RankEvalError
from polars_rankeval.measures import trec, weighted
from polars_rankeval.measures.grammar import Written, plain, read_number, shown, structured
from polars_rankeval.measures.registry import (
    PARAMETERS,
    SPECS,
    canonical,
    parameters,
    required,
    suggestion,
    takes_k,
)
from polars_rankeval.measures.trec_names import TREC, trec_measures
from polars_rankeval.terms import Level, Terms

#: Names of trec_eval, by which their parameters are read.
_TREC_NAMES = {name.lower(): name for name in TREC}


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
        known = canonical(name) if isinstance(name, str) else None
        if known is None:
            msg = f"unknown measure {name!r}{suggestion(str(name))}"
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
        params = {parameter: structured(value) for parameter, value in params.items()}
        for parameter, value in params.items():
            if parameter not in allowed:
                has = ", ".join(allowed) or "none"
                msg = f"{known} has no parameter {parameter!r} (it has: {has})"
                raise RankEvalError(msg)
            words, fits = PARAMETERS.get(f"{known}.{parameter}", PARAMETERS[parameter])
            if not fits(value):
                msg = f"{known}: {parameter} must be {words}, got {value!r}"
                raise RankEvalError(msg)
        missing = [p for p in required(known) if p not in params and (p != "k" or k is None)]
        if missing:
            msg = f"{known} needs its parameter {missing[0]}, as in {known}({missing[0]}=0.9)"
            if missing[0] in ("k", SPECS[known].at):
                shape = f"{known}@{5 if missing[0] == 'k' else 0.5}"
                msg = f"{known} needs a number behind it, as in {shape}"
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
        ordered = tuple((p, plain(params[p])) for p in allowed if p in params)
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
        written = Written.read(text)
        if written is None:
            msg = (
                f"cannot read measure {text!r}: write it as nDCG@10 or P(rel=2)@5{suggestion(text)}"
            )
            raise RankEvalError(msg)
        try:
            return cls._of(written)
        except RankEvalError as error:
            msg = str(error) if repr(written.name) in str(error) else f"measure {text!r}: {error}"
            raise RankEvalError(msg) from None

    @classmethod
    def _of(cls, written: Written) -> Measure:
        name, params = written.name, written.params()
        if written.trec:
            trec = _TREC_NAMES.get(name.lower())
            if trec is not None:
                several = trec_measures(trec, written.trec)
                if len(several) > 1:
                    msg = f"these are {len(several)} measures: name them one by one, or pass the text to per_query or evaluate"
                    raise RankEvalError(msg)
                return cls(several[0].name, **several[0].params, **params)
        behind = written.at or written.trec
        if behind is None:
            return cls(name, **params)
        known = canonical(name)
        at = SPECS[known].at if known is not None else None
        if at is not None:
            try:
                return cls(name, **{**params, at: read_number(behind)})
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
        inside = ", ".join(f"{p}={shown(value)}" for p, value in self.params if p != at)
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


def _expanded(measure: str | Measure) -> list[Measure]:
    """One measure, or the several that trec_eval's way of writing means: `P.5,10`, `iprec_at_recall`."""
    written = Written.read(measure) if isinstance(measure, str) else None
    name = _TREC_NAMES.get(written.name.lower()) if written and not written.inside else None
    if written is None or name is None or written.at or not TREC[name].each:
        return [Measure.parse(measure)]
    if written.trec is None and (TREC[name].name != name or SPECS[name].uncut):
        return [Measure.parse(measure)]  # `P` and `recall` are set measures where they stand alone
    try:
        several = trec_measures(name, written.trec)
        return [Measure(m.name, **m.params) for m in several]
    except RankEvalError as error:
        msg = f"measure {measure!r}: {error}"
        raise RankEvalError(msg) from None
