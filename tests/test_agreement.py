"""The same numbers as scikit-learn, pytrec_eval (trec_eval) and ir_measures, where they define the same."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panel import by_query
from strategies import Table, tables
from ways import WAYS, differences, same

pytrec_eval = pytest.importorskip("pytrec_eval")
ir_measures = pytest.importorskip("ir_measures")
sklearn = pytest.importorskip("sklearn.metrics")


def per_query(frame: pl.DataFrame, *names: str, **options: Any) -> dict[Any, Any]:
    """Values of each query."""
    return by_query(frame.rankeval.per_query(*names, **options))  # type: ignore[attr-defined]


# --- scikit-learn ---------------------------------------------------------------------------------

CELLS = st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), min_size=2, max_size=40)


@settings(max_examples=60)
@given(cells=CELLS, k=st.none() | st.integers(1, 50))
def test_scikit_learn(cells: list[tuple[int, int]], k: int | None) -> None:
    frame = pl.DataFrame(cells, schema=["label", "score"], orient="row").with_columns(query_id=0)
    cut = "" if k is None else f"@{k}"
    names = ["AP", "AUC", f"nDCG{cut}", f"DCG{cut}", f"nDCG(gain=exp2){cut}"]
    ap, auc, ndcg, dcg, ndcg_exp2 = per_query(frame, *names)[0]
    label, score = np.array(cells).T
    relevant = label > 0
    assert same(ndcg, sklearn.ndcg_score([label], [score], k=k))
    assert same(dcg, sklearn.dcg_score([label], [score], k=k))
    assert same(ndcg_exp2, sklearn.ndcg_score([2.0**label - 1], [score], k=k))
    if relevant.any():
        assert same(ap, sklearn.average_precision_score(relevant, score))
    if relevant.any() and not relevant.all():
        assert same(auc, sklearn.roc_auc_score(relevant, score))


# --- trec_eval ------------------------------------------------------------------------------------

CUTOFFS = (1, 2, 3, 5, 10)
#: trec_eval's name, which is an alias here too, and how pytrec_eval asks for it.
TREC = {
    "map": "map",
    "recip_rank": "recip_rank",
    "Rprec": "Rprec",
    "ndcg": "ndcg",
    "set_P": "set_P",
    "set_recall": "set_recall",
    "set_F": "set_F",
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_rel_ret": "num_rel_ret",
} | {
    f"{name}_{k}": f"{name}.{','.join(map(str, CUTOFFS))}"
    for name in ("P", "recall", "map_cut", "ndcg_cut", "success")
    for k in CUTOFFS
}


def trec_eval(table: Table, **options: Any) -> dict[str, list[float]]:
    """What pytrec_eval makes of the queries that it knows: those with a judgement and a document."""
    run: dict[str, dict[str, float]] = {}
    qrel: dict[str, dict[str, int]] = {}
    for query, row in table.rows:
        if row.score is not None:
            run.setdefault(query, {})[row.doc] = float(row.score)
        # Negative labels make pytrec_eval write out of bounds; to trec_eval they are no judgement.
        if row.label is not None and row.label >= 0:
            qrel.setdefault(query, {})[row.doc] = int(row.label)
    evaluator = pytrec_eval.RelevanceEvaluator(qrel, set(TREC.values()), **options)
    return {
        query: [values[name] for name in TREC] for query, values in evaluator.evaluate(run).items()
    }


# It compares scores as Float32, so these are whole numbers.
TREC_TABLES = tables(labels=("int", "int8", "uint8", "bool"), scores=("int",), docs=("string",))


@settings(max_examples=60)
@given(table=TREC_TABLES, judged_only=st.booleans(), way=st.sampled_from(list(WAYS)))
def test_trec_eval(table: Table, judged_only: bool, way: str) -> None:
    expected = trec_eval(table, judged_docs_only_flag=judged_only)
    options = {"ties": "doc", "judged_only": judged_only}
    result = WAYS[way](table.to_frame(), lambda f: f.rankeval.per_query(*TREC, **options))
    known = {q: values for q, values in by_query(result).items() if q in expected}
    assert not differences(known, expected, list(TREC))


@settings(max_examples=30)
@given(table=tables(labels=("int", "uint8"), scores=("int",), docs=("string",)))
def test_trec_eval_with_a_level_of_relevance(table: Table) -> None:
    expected = trec_eval(table, relevance_level=2)
    # Its gains and its nDCG know no level.
    names = [name for name in TREC if "ndcg" not in name and name != "num_ret"]

    def levelled(name: str) -> str:
        base, _, k = name.rpartition("_")
        return f"{base}(rel=2)@{k}" if k.isdigit() else f"{name}(rel=2)"

    got = per_query(table.to_frame(), *map(levelled, names), ties="doc")
    positions = [list(TREC).index(name) for name in names]
    chosen = {q: [values[i] for i in positions] for q, values in expected.items()}
    assert not differences({q: got[q] for q in chosen}, chosen, names)


# --- ir_measures ----------------------------------------------------------------------------------


@st.composite
def strict_tables(draw: st.DrawFn) -> pl.DataFrame:
    """Tables without ties, which its providers break in different ways, and without negative labels."""
    rows = []
    for query in draw(st.lists(st.sampled_from(["1", "2", "3"]), min_size=1, unique=True)):
        labels = draw(st.lists(st.sampled_from([None, 0, 1, 2, 4]), min_size=1, max_size=12))
        scores = draw(st.permutations(range(len(labels))))
        unretrieved = draw(st.sets(st.sampled_from(range(len(labels))), max_size=3))
        rows += [
            (query, f"d{i}", label, None if i in unretrieved else float(score))
            for i, (label, score) in enumerate(zip(labels, scores, strict=True))
        ]
    schema = {"query_id": pl.String, "doc_id": pl.String, "label": pl.Int64, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def agree_with(
    provider: Any, frame: pl.DataFrame, names: Sequence[str], tolerance: float, **renamed: str
) -> None:
    """The provider's values for the queries that it knows; `renamed` maps its names to ours."""
    run = frame.filter(pl.col("score").is_not_null())
    qrels = frame.filter(pl.col("label").is_not_null())
    if run.is_empty() or qrels.is_empty():
        return
    measures = {ir_measures.parse_measure(name): name for name in names}
    metrics = provider.iter_calc(
        list(measures),
        [ir_measures.Qrel(q, d, label) for q, d, label in qrels.drop("score").iter_rows()],
        [ir_measures.ScoredDoc(q, d, score) for q, d, score in run.drop("label").iter_rows()],
    )
    got = frame.rankeval.per_query(*(renamed.get(n, n) for n in names))  # type: ignore[attr-defined]
    values = {row["query_id"]: row for row in got.iter_rows(named=True)}
    both = set(run["query_id"]) & set(qrels["query_id"])
    for metric in metrics:
        if metric.query_id in both:
            name = measures[metric.measure]
            mine = values[metric.query_id][renamed.get(name, name)]
            assert same(mine, metric.value, tolerance), (metric.query_id, name)


@settings(max_examples=40)
@given(frame=strict_tables())
def test_ir_measures(frame: pl.DataFrame) -> None:
    names = ["AP", "AP(rel=2)", "AP@3", "nDCG", "nDCG@3", "P@3", "P(rel=2)@5", "R@3", "RR", "Rprec"]
    names += ["Success@2", "SetP", "SetR", "SetF", "NumRet", "NumRelRet"]
    agree_with(ir_measures.pytrec_eval, frame, names, 1e-12)


@settings(max_examples=40)
@given(frame=strict_tables())
def test_ir_measures_judged(frame: pl.DataFrame) -> None:
    agree_with(ir_measures.judged, frame, ["Judged@1", "Judged@3", "Judged@20"], 1e-12)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
@settings(max_examples=8)
@given(frame=strict_tables())
def test_gdeval(frame: pl.DataFrame) -> None:
    # It prints five decimals.
    names = ["ERR@1", "ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5"]
    renamed = {"nDCG(dcg='exp-log2')@5": "nDCG(gain=exp2)@5"}
    agree_with(ir_measures.gdeval, frame, names, 6e-6, **renamed)
