"""What the streaming engine makes of the plans: a fall-back that creeps in is noticed here, and docs/scale.md says what these are."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import polars as pl
import pytest

import polars_rankeval as rk

USUAL = ["AP", "RR", "nDCG@10", "P@10", "R@100", "RBP", "Success@5", "AUC", "IPrec@0.5"]

#: Nodes of the streaming engine itself.
NATIVE = {
    "asof-join",
    "backward_fill",
    "cum_sum",
    "equi-join",
    "filter",
    "forward_fill",
    "gather",
    "group-by",
    "in-memory-source",
    "input-independent-select",
    "map",  # explode
    "multi-scan[parquet]",
    "multiplexer",
    "reduce",
    "select",
    "semi-join",
    "shift",
    "sort",
    "sorted-unique",
    "unordered-union",
    "window",
    "with-columns",
    "with-row-index",
    "zip-broadcast",
}


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> pl.LazyFrame:
    """A Parquet file with string queries."""
    path = tmp_path_factory.mktemp("plan") / "sample.parquet"
    rk.sample().sink_parquet(path)
    return pl.scan_parquet(path)


def nodes(plan: pl.LazyFrame) -> Counter[str]:
    """The kinds of nodes of the physical plan; of a columnar function, also which."""
    graph = plan.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
    labels = re.findall(r'^\d+ \[label="((?:[^"\\]|\\.)*)"', graph or "", re.MULTILINE)
    kinds = []
    for label in labels:
        kind, _, rest = label.replace(r"\n", "\n").partition("\n")
        function = re.search(r"= (\w+)\(", rest) if kind == "columnar-function" else None
        kinds.append(f"{kind} {function[1]}" if function else kind.split("[maintain_order")[0])
    assert kinds, "the graph has another form than it had"
    return Counter(kinds)


@pytest.mark.parametrize("ties", ["block", "expected", "best", "worst", "order", "doc"])
@pytest.mark.parametrize("function", ["per_query", "evaluate"])
def test_usual_measures_stream(scanned: pl.LazyFrame, function: str, ties: Any) -> None:
    plan = getattr(rk, function)(scanned, *USUAL, by="model", ties=ties)
    kinds = nodes(plan)
    fallbacks = {kind: count for kind, count in kinds.items() if kind not in NATIVE}
    assert set(fallbacks) <= {"in-memory-map", "columnar-function int_range"}
    # The checks: of counts (one row), of the codes of string queries (a row a query), and of doubtful documents under "doc".
    assert fallbacks["in-memory-map"] <= (7 if ties == "doc" else 3)


def test_numeric_queries_have_one_python_function(scanned: pl.LazyFrame) -> None:
    numbered = scanned.with_columns(query_id=pl.col("query_id").str.len_bytes().cast(pl.Int64))
    kinds = nodes(rk.per_query(numbered, "AP", "RR", "P@10"))
    assert {k: n for k, n in kinds.items() if k not in NATIVE} == {"in-memory-map": 1}


def test_a_contiguous_plan_is_a_python_scan(scanned: pl.LazyFrame) -> None:
    assert nodes(rk.per_query(scanned, "AP", contiguous=True)) == {"streaming-python-scan": 1}
