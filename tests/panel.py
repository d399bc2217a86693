"""Measures with their parameters, as the package names them and as the oracle takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from hypothesis import strategies as st

import oracle
import polars_rankeval as rk
from oracle import Row
from strategies import Table


@dataclass(frozen=True)
class Asked:
    """A measure as the oracle takes it."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        inside = ", ".join(f"{p}={v}" for p, v in self.params.items() if p != "k")
        k = self.params.get("k")
        text = self.name + (f"({inside})" if inside else "") + ("" if k is None else f"@{k}")
        return str(rk.Measure.parse(text))

    def of(self, rows: Sequence[Row], **options: Any) -> float | None:
        """Its exact value for one query."""
        return oracle.measure(rows, self.name, max_orders=40, **options, **self.params)


#: What each measure takes beside k: values to choose from. The default is chosen by leaving it out.
REL = {"rel": [1, 2, 0.5]}
GAIN = {"gain": ["linear", "exp2"]}
PARAMETERS: dict[str, dict[str, list[Any]]] = {
    "AP": REL,
    "RR": REL,
    "Success": REL,
    "ERR": {"max_label": [4, 5, 9], "discount": ["log2"]},
    "nDCG": GAIN,
    "DCG": GAIN,
    "CG": GAIN,
    "P": REL,
    "R": REL,
    "F": {**REL, "beta": [1, 2, 0.5]},
    "RBP": {**REL, "p": [0.5, 0.8, 0.95]},
    "Rprec": REL,
    "Judged": {},
    "SetP": REL,
    "SetR": REL,
    "SetF": {**REL, "beta": [1, 2, 0.5]},
    "AUC": REL,
    "NumRet": {},
    "NumRel": REL,
    "NumRelRet": REL,
}
CUT = ("AP", "RR", "Success", "ERR", "nDCG", "DCG", "CG", "P", "R", "F", "RBP", "Judged")
#: Without a cutoff these are the Set measures.
ALWAYS_CUT = ("P", "R", "F")

#: Every measure, with each parameter, and with cutoffs below, at and above the lengths of lists.
PANEL = [
    Asked("AP"),
    Asked("AP", {"k": 1}),
    Asked("AP", {"rel": 2, "k": 3}),
    Asked("RR"),
    Asked("RR", {"k": 2}),
    Asked("RR", {"rel": 2, "k": 20}),
    Asked("Success"),
    Asked("Success", {"k": 1}),
    Asked("Success", {"rel": 0.5, "k": 3}),
    Asked("ERR"),
    Asked("ERR", {"max_label": 6, "k": 2}),
    Asked("ERR", {"discount": "log2", "k": 20}),
    Asked("nDCG"),
    Asked("nDCG", {"k": 2}),
    Asked("nDCG", {"gain": "exp2", "k": 3}),
    Asked("DCG"),
    Asked("DCG", {"gain": "exp2", "k": 4}),
    Asked("CG"),
    Asked("CG", {"gain": "exp2", "k": 2}),
    Asked("P", {"k": 1}),
    Asked("P", {"rel": 2, "k": 20}),
    Asked("R", {"k": 3}),
    Asked("R", {"rel": 2, "k": 1}),
    Asked("F", {"k": 2}),
    Asked("F", {"rel": 2, "beta": 0.5, "k": 20}),
    Asked("RBP"),
    Asked("RBP", {"rel": 2, "p": 0.5, "k": 3}),
    Asked("Rprec"),
    Asked("Rprec", {"rel": 2}),
    Asked("Judged"),
    Asked("Judged", {"k": 3}),
    Asked("SetP"),
    Asked("SetR", {"rel": 2}),
    Asked("SetF"),
    Asked("SetF", {"beta": 2}),
    Asked("AUC"),
    Asked("AUC", {"rel": 2}),
    Asked("NumRet"),
    Asked("NumRel"),
    Asked("NumRelRet", {"rel": 2}),
]


@st.composite
def asked(draw: st.DrawFn, names: Sequence[str] = tuple(PARAMETERS)) -> Asked:
    """A measure with some of its parameters."""
    name = draw(st.sampled_from(names))
    params = {
        parameter: draw(st.sampled_from(values))
        for parameter, values in PARAMETERS[name].items()
        if draw(st.booleans())
    }
    if name in ALWAYS_CUT or (name in CUT and draw(st.booleans())):
        params["k"] = draw(st.integers(1, 12))
    return Asked(name, params)


def exact(table: Table, measures: Iterable[Asked], **options: Any) -> dict[Any, list[float | None]]:
    """Values of the oracle for each query."""
    kept = list(measures)
    return {
        query: [m.of(rows, **options) for m in kept] for query, rows in table.by_query().items()
    }


def by_query(result: pl.DataFrame) -> dict[Any, tuple[float | None, ...]]:
    """Rows of a result, found by their first column."""
    rows = {row[0]: row[1:] for row in result.iter_rows()}
    assert len(rows) == result.height, "a query has two rows"
    return rows
