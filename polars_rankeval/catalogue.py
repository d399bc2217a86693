"""The catalogue of measures: what each is, its parameters, other spellings, and what it gives at the edges.

Nothing is written twice: the words are the docstrings of the formulas, the parameters their signatures, and the values at the edges are computed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

import polars as pl

from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import per_query
from polars_rankeval.measures.names import Measure
from polars_rankeval.measures.registry import ALIASES, PARAMETERS, SPECS, parameters, takes_k

#: Queries at the edge of what can be evaluated: labels (1 for relevant) and scores of their rows.
EDGES: dict[str, tuple[list[int | None], list[float | None]]] = {
    "all relevant rows first": ([1, 1, 0], [3.0, 2.0, 1.0]),
    "all relevant rows last": ([0, 1, 1], [3.0, 2.0, 1.0]),
    "one relevant row of two, tied": ([1, 0], [1.0, 1.0]),
    "no relevant row": ([0, 0], [2.0, 1.0]),
    "no judged row": ([None, None], [2.0, 1.0]),
    "nothing retrieved": ([1, 0], [None, None]),
}


@dataclass(frozen=True)
class Entry:
    """What there is to say of a measure."""

    name: str
    #: as it is asked for, `@k` where a cutoff is needed, `[@k]` where it may be left out
    usage: str
    formula: str
    #: name, default, and what it must be
    parameters: list[tuple[str, Any, str]]
    aliases: list[str]
    undefined: bool

    @classmethod
    def of(cls, name: str) -> Entry:
        """The entry of a measure of this name."""
        spec = SPECS[name]
        cutoff = ""
        if takes_k(name):
            cutoff = "@k" if spec.uncut else "[@k]"
        return cls(
            name=name,
            usage=name + cutoff,
            formula=(getdoc(spec.formula) or "").partition("\n\n")[0].replace("\n", " "),
            parameters=[(p, v, PARAMETERS[p][0]) for p, v in parameters(name).items()],
            aliases=[alias for alias, target in ALIASES.items() if target == name],
            undefined=spec.undefined,
        )


def entries() -> list[Entry]:
    """All measures, in the order of the registry."""
    return [Entry.of(name) for name in SPECS]


def example(text: str) -> Measure:
    """The measure of a name, with a number where it needs one."""
    try:
        return Measure.parse(text)
    except RankEvalError:
        # Some names need a cutoff, a recall or a precision, and a bare name asks what it is.
        for number in ("@5", "@0.5", "(r=0.9)", "(p=0.9)"):
            with suppress(RankEvalError):
                return Measure.parse(text + number)
        raise


def edge_values(measure: Measure, **options: Any) -> dict[str, float | None]:
    """What a measure gives for the queries of `EDGES`, computed now."""
    relevant = dict(measure.params).get("rel", 1)
    table = pl.concat(
        pl.DataFrame(
            {"query_id": [i] * len(labels), "label": labels, "score": scores},
            schema={"query_id": pl.Int64, "label": pl.Float64, "score": pl.Float64},
        ).with_columns(pl.col("label") * relevant)
        for i, (labels, scores) in enumerate(EDGES.values())
    )
    if measure.strict:
        options = {"ties": "order", **options}
    values = per_query(table, measure, **options)[str(measure)]
    return dict(zip(EDGES, values.to_list(), strict=True))
