"""trec_eval's other measures, and those of ir_measures, agree with both; both suppliers give the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_rankeval as rk
from polars_rankeval.group_terms import GroupTerms
from polars_rankeval.measures.names import SPECS, parse_all
from polars_rankeval.measures.trec_names import TREC, trec_measures
from ways import same

pytrec_eval = pytest.importorskip("pytrec_eval")
ir_measures = pytest.importorskip("ir_measures")

STRICT = [name for name, spec in SPECS.items() if spec.strict]
#: As `rk` and as ir_measures write them.
ADDED = {
    "IPrec@0": "IPrec@0.0",
    "IPrec@0.1": "IPrec@0.1",
    "IPrec@1": "IPrec@1.0",
    "Bpref": "Bpref",
    "Bpref(rel=2)": "Bpref(rel=2)",
    "infAP": "infAP",
    "SetAP": "SetAP",
    "SetRelP": "SetP(relative=True)",
    "Accuracy": "Accuracy",
    "Accuracy(rel=2)@5": "Accuracy(rel=2)@5",
    "Judged@5": "Judged@5",
}


def random_table(seed: int, *, scores: int, least: int) -> pl.DataFrame:
    """Queries with heavy ties where `scores` is small, with documents of one side only, and labels from `least`."""
    random = np.random.default_rng(seed)
    frames = []
    for query in range(6):
        documents, n = random.permutation(70), int(random.integers(1, 50))
        judged = np.isin(documents, random.permutation(70)[: int(random.integers(1, 50))])
        labels = random.integers(least, 4, 70)
        frame = pl.DataFrame(
            {
                "query_id": f"q{query}",
                "doc_id": [f"d{d}" for d in documents],
                "label": labels,
                # Exact in Float32, as pytrec_eval compares them.
                "score": random.permutation(70)[:70] % scores / 8,
                "judged": judged,
                "retrieved": np.arange(70) < n,
            }
        )
        frames.append(
            frame.with_columns(
                pl.when("judged").then("label").alias("label"),
                pl.when("retrieved").then("score").alias("score"),
            ).filter(pl.col("judged") | pl.col("retrieved"))
        )
    return pl.concat(frames).drop("judged", "retrieved")


def nested(table: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """What pytrec_eval takes."""
    result: dict[str, dict[str, Any]] = {}
    for query, doc, number in (
        table.drop_nulls(value).select("query_id", "doc_id", value).iter_rows()
    ):
        result.setdefault(query, {})[doc] = number
    return result


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_pytrec_eval(seed: int, level: int) -> None:
    table = random_table(seed, scores=[3, 6, 70][seed % 3], least=0)
    names = sorted(
        set(pytrec_eval.supported_measures) & set(TREC) - {"num_q", "gm_map", "gm_bpref"}
    )
    evaluator = pytrec_eval.RelevanceEvaluator(nested(table, "label"), names, relevance_level=level)
    wanted = evaluator.evaluate(nested(table, "score"))
    lines = [m for name in names for m in trec_measures(name, None)]
    measures = {}
    for m in lines:
        params = dict(m.params)
        if level != 1 and SPECS[m.name].rel:
            params["rel"] = level
        if m.name in ("iprec_at_recall", "11pt_avg"):
            params["version"] = 9
        measures[m.line] = rk.Measure(m.name, **params)
    result = rk.per_query(table, *measures.values(), ties="doc")
    for row in result.iter_rows(named=True):
        for line, measure in measures.items():
            theirs = wanted[row["query_id"]][line]
            if line == "num_rel" or math.isnan(theirs):  # their num_rel knows no level
                continue
            assert same(row[str(measure)], theirs, 1e-6), (row["query_id"], line)


@pytest.mark.parametrize("seed", range(4))
def test_ir_measures(seed: int) -> None:
    table = random_table(seed, scores=70, least=0)  # its measures break ties in several ways
    qrels, run = nested(table, "label"), nested(table, "score")
    measures = {ours: ir_measures.parse_measure(theirs) for ours, theirs in ADDED.items()}
    result = rk.per_query(table, *measures, ties="doc")
    values = {row["query_id"]: row for row in result.iter_rows(named=True)}
    compared = 0
    for ours, measure in measures.items():
        for metric in measure.iter_calc(qrels, run):
            if ours == "IPrec@0.1" and values[metric.query_id]["IPrec@0.1"] != metric.value:
                continue  # counts of relevant rows are rounded there
            assert same(values[metric.query_id][ours], metric.value, 1e-6), (ours, metric)
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("ties", ["doc", "order", "best", "worst"])
def test_both_suppliers_give_the_same(ties: Any) -> None:
    names = [
        *STRICT,
        "IPrec@0.3",
        "SetAP",
        "SetRelP",
        "GMAP",
        "nDCG(gains=0:1;1:3;2:0.5)",
        "IDCG",
        "NumQ",
    ]
    names += ["G(gains=1:3;2:9)", "ndcg_rel(gains=0:1;1:2)", "Rndcg(gains=3:0.5)", "rbp(gains=2:7)"]
    names = [n if n not in ("unj", "relative_P") else f"{n}@5" for n in names]
    names = [n if n not in ("iprec_at_recall", "Rprec_mult") else f"{n}@0.6" for n in names]
    table = random_table(5, scores=6, least=-1).with_columns(pl.col("label").cast(pl.Float64))
    measures = parse_all(names)
    frame = rk.per_query(table, *measures, ties=ties)
    for measure in measures:

        def terms(level: float | None) -> GroupTerms:
            return GroupTerms(pl.col("label"), pl.col("score"), level, ties, pl.col("doc_id"))

        alone = table.group_by("query_id").agg(
            value=measure.value(terms(measure.level)), known=terms(measure.level).relevant > 0
        )
        both = frame.join(alone, on="query_id")
        for ours, value, known in both.select(str(measure), "value", "known").iter_rows():
            assert not known or same(ours, value, 1e-10), measure


@pytest.mark.parametrize("ties", ["block", "expected"])
def test_refused_where_rows_have_no_position(ties: Any) -> None:
    table = random_table(0, scores=3, least=0)
    with pytest.raises(rk.RankEvalError, match=r"Bpref, yaap: .*'doc'.*'order', 'best' or 'worst'"):
        rk.per_query(table, "Bpref", "AP", "yaap", ties=ties)


def test_geometric_means_have_a_floor() -> None:
    table = pl.DataFrame(
        {"query_id": [1, 2], "doc_id": ["a", "a"], "label": [1, 1], "score": [1.0, None]}
    )
    means = rk.evaluate(table, "GMAP", "gm_bpref", "AP", ties="doc")
    assert means.row(0)[1:] == pytest.approx((10**-2.5, 10**-2.5, 0.5))


def test_a_measure_does_not_change_beside_others() -> None:
    table = random_table(3, scores=3, least=-1).with_columns(
        label=pl.col("label").clip(upper_bound=4)
    )
    for ties in ("block", "expected"):
        alone = rk.per_query(table, "ERR", ties=ties)
        beside = rk.per_query(table, "Judged@5", "ERR", "num_nonrel_judged_ret", ties=ties)
        assert all(map(same, alone["ERR"], beside["ERR"]))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("iprec_at_recall_0.10", ["iprec_at_recall@0.1"]),
        ("P.5,10", ["P@5", "P@10"]),
        ("ndcg_cut.10", ["nDCG@10"]),
        ("ndcg.1=3,2=9", ["nDCG(gains=1:3;2:9)"]),
        ("11pt_avg..25,.5", ["11pt_avg(points=0.25;0.5)"]),
        ("utility.2,-1,0,0", ["utility(found=2, noise=-1, missed=0, rest=0)"]),
        ("unj", ["unj@5", "unj@10", "unj@20"]),
        ("rbp", ["rbp"]),
        ("RBP", ["RBP"]),
        ("rbp.p=0.8", ["rbp(p=0.8)"]),
        ("set_F.4", ["SetF(beta=2)"]),
        ("bpref", ["Bpref"]),
    ],
)
def test_names_of_trec_eval(text: str, canonical: list[str]) -> None:
    measures = parse_all([text])
    assert [str(m) for m in measures] == canonical
    assert [rk.Measure.parse(str(m)) for m in measures] == measures


def test_gains_in_python() -> None:
    assert rk.Measure("nDCG", gains={1: 3, 2: 9.0}) == rk.Measure.parse("ndcg.1=3,2=9")
    assert rk.Measure("11pt_avg", points=[0.5, 1]) == rk.Measure.parse("11pt_avg(points=0.5;1)")
    bad: dict[str, Any]
    for bad in ({"gains": "x"}, {"gains": {}}, {"gains": {1: float("nan")}}):
        with pytest.raises(rk.RankEvalError, match="gains"):
            rk.Measure("nDCG", **bad)


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_zeros_of_both_signs_tie(dtype: pl.DataType, engine: Any) -> None:
    table = pl.DataFrame(
        {"query_id": 1, "doc_id": [*"abcd"], "label": [1, 0, 0, 0], "score": [-0.0, 0.0, 0.0, -0.0]}
    ).with_columns(pl.col("score").cast(dtype))
    for ties, wanted in (("block", 1 / 4), ("doc", 1 / 4), ("best", 1.0), ("worst", 1 / 4)):
        value = rk.per_query(table.lazy(), "AP", ties=ties).collect(engine=engine)  # type: ignore[call-overload]
        assert value["AP"].item() == pytest.approx(wanted), ties
    assert rk.tie_blocks(table).height == 1
