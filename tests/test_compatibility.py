"""Compat is what its definition says, exactly, and what ir_measures computes where rows are not tied."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_rankeval as rk
from polars_rankeval._typing import Ties
from shared import SHARED
from test_trec_measures import nested, random_table
from ways import WAYS, same

ir_measures = pytest.importorskip("ir_measures")

FILES = SHARED / "data" / "ir_measures"
NAMES = ["Compat", "Compat(p=0.8)", "Compat(p=0.8, normalize=False)", "Compat(normalize=False)"]
#: A label and a score; each may be missing.
Pair = tuple[int | None, int | None]


def compatibility(
    ranking: list[int | None], others: list[int | None], p: Fraction, *, normalize: bool
) -> Fraction:
    """The overlap at every depth of the labels of a ranking with the ideal one, rows told apart by number."""
    labels = [x or 0 for x in [*ranking, *others]]
    # A stable sort: the rows of one label keep the order of the ranking, and those behind it follow.
    ideal = [i for i in sorted(range(len(labels)), key=lambda i: -labels[i]) if labels[i] > 0]
    if not ideal:
        return Fraction()
    depths = range(1, max(len(ranking), len(ideal)) + 1)
    shared = [len({*range(min(i, len(ranking)))} & {*ideal[:i]}) for i in depths]
    most = [min(i, len(ideal)) if normalize else i for i in depths]

    def weighted(counts: list[int]) -> Fraction:
        terms = (p ** (i - 1) * Fraction(n, i) for i, n in zip(depths, counts, strict=True))
        return sum(terms, Fraction())

    return weighted(shared) / weighted(most)


def arranged(rows: list[tuple[int, Pair]], ties: str) -> list[tuple[int, Pair]]:
    """Retrieved rows in the order of a policy; each has its number, which is its document too."""
    label = {i: pair[0] for i, pair in rows}
    inside: dict[str, Any] = {
        "order": lambda i: i,
        "doc": lambda i: -i,
        "best": lambda i: (label[i] is None, -(label[i] or 0)),
        "worst": lambda i: (label[i] is not None, label[i] or 0),
    }
    kept = [(i, pair) for i, pair in rows if pair[1] is not None]
    return sorted(kept, key=lambda row: (-(row[1][1] or 0), inside[ties](row[0])))


PAIRS = st.lists(
    st.tuples(st.sampled_from([None, -1, 0, 1, 1, 2, 3]), st.sampled_from([None, -1, 0, 1, 2])),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("ties", ["doc", "order", "best", "worst"])
@given(queries=st.lists(PAIRS, min_size=1, max_size=4), way=st.sampled_from(sorted(WAYS)))
def test_the_definition(ties: Any, queries: list[list[Pair]], way: str) -> None:
    table = pl.DataFrame(
        [(q, i, *pair) for q, pairs in enumerate(queries) for i, pair in enumerate(pairs)],
        schema={"query_id": pl.Int64, "doc_id": pl.Int64, "label": pl.Int64, "score": pl.Int64},
        orient="row",
    )
    result = WAYS[way](table, lambda frame: rk.per_query(frame, *NAMES, ties=ties))
    for row in result.iter_rows(named=True):
        rows = list(enumerate(queries[row["query_id"]]))
        ranking = [pair[0] for _, pair in arranged(rows, ties)]
        others = [pair[0] for _, pair in rows if pair[1] is None]
        for name in NAMES:
            params = dict(rk.Measure.parse(name).params)
            p = Fraction(params.get("p", 0.95))
            wanted = compatibility(ranking, others, p, normalize=params.get("normalize", True))
            assert same(row[name], float(wanted)), (name, ranking, others)


@given(
    labels=st.lists(st.sampled_from([None, 0, 1, 2]), min_size=1, max_size=5), rest=st.booleans()
)
def test_best_and_worst_are_the_bounds(labels: list[int | None], rest: bool) -> None:
    others: list[int | None] = [1] if rest else []
    values = [
        compatibility(list(order), others, Fraction(1, 2), normalize=True)
        for order in permutations(labels)
    ]
    table = pl.DataFrame({"label": [*labels, *others], "score": [1] * len(labels) + [None] * rest})
    bounds: dict[Ties, Fraction] = {"worst": min(values), "best": max(values)}
    for ties, bound in bounds.items():
        value = rk.per_query(table, "Compat(p=0.5)", ties=ties, query=None)
        assert same(value.item(), float(bound))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_ir_measures(name: str, seed: int) -> None:
    # There a document that was not retrieved has the score 0, so those of the run are above it; -1 is a label as any below 1.
    table = random_table(seed, scores=70, least=-1).with_columns(pl.col("score") + 1)
    compare(table, name, nested(table, "label"), nested(table, "score"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_ties_of_ir_measures(name: str, seed: int) -> None:
    # It breaks ties by document, ascending, and those of the ideal ranking by the order of the judgements: the order of a sorted table.
    table = random_table(seed, scores=3, least=0).with_columns(pl.col("score") + 1).sort("doc_id")
    compare(table, name, nested(table, "label"), nested(table, "score"), ties="order")


@pytest.mark.skipif(not FILES.is_dir(), reason=f"{FILES} is not there")
@pytest.mark.parametrize("name", NAMES)
def test_files_of_ir_measures(name: str) -> None:
    run, qrels = FILES / "compat.run", FILES / "compat.qrels"
    table = rk.judge(rk.scan_run(run), rk.scan_qrels(qrels)).collect()
    assert table["query_id"].n_unique() > 1
    theirs = ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
    compare(table, name, *map(list, theirs))


def compare(table: pl.DataFrame, name: str, qrels: Any, run: Any, ties: Any = "doc") -> None:
    values = dict(rk.per_query(table, name, ties=ties).iter_rows())
    metrics = list(ir_measures.parse_measure(name).iter_calc(qrels, run))
    assert len(metrics) > 1
    for metric in metrics:
        assert same(values[metric.query_id], metric.value), metric


def test_queries_at_the_edge() -> None:
    table = pl.DataFrame({"query_id": [1, 2], "label": [1, 0], "score": [None, 1.0]})
    values = rk.per_query(table, "Compat", ties="order", no_relevant="null").sort("query_id")
    assert values["Compat"].to_list() == [0.0, None]
    assert str(rk.Measure("Compat", normalize=False)) == "Compat(normalize=False)"
    with pytest.raises(rk.RankEvalError, match="normalize must be true or false, got 1"):
        rk.Measure.parse("Compat(normalize=1)")
    with pytest.raises(rk.RankEvalError, match="Compat"):
        rk.per_query(table, "Compat")
