"""The lines that `rankeval trec` prints: which are asked for, in trec_eval's order, and how their values are written."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import polars as pl

from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import GEOMETRIC_FLOOR
from polars_rankeval.measures.names import Measure
from polars_rankeval.measures.registry import SPECS
from polars_rankeval.measures.trec_names import TREC, TrecMeasure, trec_measures

_OFFICIAL = (
    "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
)
_SET = "set_P set_recall set_relative_P set_map set_F"
NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": tuple(_OFFICIAL.split()),
    "set": tuple(f"runid num_q num_ret num_rel num_rel_ret utility {_SET}".split()),
    "all_trec": tuple(
        f"{_OFFICIAL} relstring recall unj rbp rbp_resid infAP gm_bpref utility 11pt_avg ndcg relative_P Rprec_mult success "
        f"map_cut ndcg_cut ndcg_rel Rndcg binG G {_SET} num_nonrel_judged_ret".split()
    ),
}
#: Printed by the command alone, with no number.
_TEXTS = ("runid", "relstring")
_ORDER = ["runid", *TREC]
_ORDER.insert(_ORDER.index("P") + 1, "relstring")
_SUMMED = {"num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"}


@dataclass(frozen=True)
class Line:
    """A line of the output: its name, and the column of the result that it shows."""

    name: str
    trec: str
    measure: Measure | None = None

    @property
    def per_topic(self) -> bool:
        """Whether it is printed for each topic."""
        return self.trec not in ("runid", "num_q", "gm_map", "gm_bpref")


def lines_asked(options: argparse.Namespace) -> list[Line]:
    """What to print, in trec_eval's order."""
    asked: dict[str, str | None] = {}
    for text in options.measures or ["official"]:
        name, dot, parameters = text.partition(".")
        members = NICKNAMES.get(name, (name,))
        unknown = [m for m in members if m not in TREC and m not in _TEXTS]
        if unknown:
            msg = f"unknown measure {text!r}{_nearest(name)}"
            raise RankEvalError(msg)
        if dot and not parameters:
            msg = f"measure {text!r} ends where its parameters should stand"
            raise RankEvalError(msg)
        for member in members:
            # The first parameters given are those that count.
            asked[member] = asked.get(member) or (parameters if name == member and dot else None)
    lines: list[Line] = []
    for name in sorted(asked, key=_ORDER.index):
        parameters = asked[name]
        if name in _TEXTS:
            lines.append(Line(name if parameters is None else f"{name}_{parameters}", name))
            continue
        lines += [Line(m.line, name, _measure(m, options)) for m in trec_measures(name, parameters)]
    return lines


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # only a failure needs it

    near = get_close_matches(name, [*_ORDER, *NICKNAMES], n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else f"; known: {', '.join(_ORDER)}"


def _measure(trec: TrecMeasure, options: argparse.Namespace) -> Measure:
    params = dict(trec.params)
    if SPECS[trec.name].rel and options.level != 1:
        params["rel"] = options.level
    if options.v9 and trec.name in ("iprec_at_recall", "11pt_avg"):
        params["version"] = 9
    if trec.name == "utility" and options.collection:
        params["collection"] = options.collection
    return Measure(trec.name, **params)


def topic_lines(values: pl.DataFrame, lines: list[Line]) -> list[str]:
    """The lines of all topics, one topic after the other."""
    topics = values["query_id"].to_list()
    columns = [
        [f"'{text or ''}'" for text in values[line.name]]
        if line.measure is None
        else [_shown(line, value) for value in values[str(line.measure)]]
        for line in lines
    ]
    heads = [f"{line.name:<22}\t" for line in lines]
    return [
        f"{head}{topic}\t{value}\n"
        for topic, *row in zip(topics, *columns, strict=True)
        for head, value in zip(heads, row, strict=True)
    ]


def mean(values: pl.DataFrame, line: Line) -> str:
    """The number of the last lines: a sum, a mean or a geometric mean."""
    column = values[str(line.measure)]
    if line.trec in _SUMMED:
        return _shown(line, float(column.sum()))
    geometric = line.measure is not None and line.measure.geometric
    if geometric:
        column = column.clip(lower_bound=GEOMETRIC_FLOOR).log()
    # Summed one topic after the other, as trec_eval does: the last digit printed may depend on it.
    mean = float(column.cum_sum().item(-1)) / column.len()
    return _shown(line, math.exp(mean) if geometric else mean)


def _shown(line: Line, value: float) -> str:
    return f"{int(value)}" if line.trec in _SUMMED else f"{value:6.4f}"
