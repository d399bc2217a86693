"""trec_eval's other measures, and those of ir_measures, agree with both; both suppliers give the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_rankeval as rk
from polars_rankeval.group_terms import GroupTerms
from polars_rankeval.measures.names import parse_all
from polars_rankeval.measures.registry import SPECS
from polars_rankeval.measures.trec_names import TREC, trec_measures
from polars_rankeval.trec_command import main
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


#: Those of one number for each query.
SINGLE = sorted(set(pytrec_eval.supported_measures) & set(TREC) - {"num_q", "gm_map", "gm_bpref"})
#: Not utility, whose parameters it does not take; they are in the golden files.
PARAMETERS = {
    "P": "1,7,69",
    "recall": "3",
    "map_cut": "2,9,60",
    "ndcg_cut": "1,50",
    "success": "2,3",
    "iprec_at_recall": "0.05,0.33,0.95",
    "Rprec_mult": "0.3,3.0",
    "relative_P": "3,40",
    "set_F": "0.5",
    "11pt_avg": "0.1,0.5",
}


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_pytrec_eval(seed: int, level: int) -> None:
    table = random_table(seed, scores=[3, 6, 70][seed % 3], least=0)
    compare(table, dict.fromkeys(SINGLE), level)


@pytest.mark.parametrize("seed", range(4))
def test_pytrec_eval_with_parameters(seed: int) -> None:
    table = random_table(seed, scores=[1, 4][seed % 2], least=0)
    compare(table, dict(PARAMETERS), 1 + seed // 2)


def test_pytrec_eval_at_the_edges() -> None:
    queries: list[tuple[list[Any], list[Any]]] = [
        ([1], [1.0]),
        ([0], [1.0]),
        ([3], [-0.0]),
        ([0, 0, 0], [2.0, None, 1.0]),  # nothing relevant
        ([None, None, 0, 2], [1.0, 2.0, None, None]),  # nothing judged was retrieved
        ([1, 2, 3, 1, 2], [5.0, 5.0, 5.0, 5.0, 5.0]),  # all relevant, all tied
        ([0, 0, 0, 1], [5.0, 5.0, 5.0, 5.0]),
        ([None] * 30 + [1], [0.0] * 30 + [-0.0]),
        ([1, 2] * 20 + [0], [None] * 40 + [1.0]),  # far more relevant than retrieved
        ([30, 0, 1], [3.0, 2.0, 1.0]),
    ]
    table = pl.concat(
        pl.DataFrame(
            {"query_id": f"q{i}", "label": labels, "score": scores},
            schema_overrides={"label": pl.Int64, "score": pl.Float64},
        ).with_columns(doc_id=pl.format("d{}", pl.int_range(pl.len())))
        for i, (labels, scores) in enumerate(queries)
    )
    for level in (1, 2):
        compare(table, dict.fromkeys(SINGLE), level)
        compare(table, dict(PARAMETERS), level)


@pytest.mark.parametrize("seed", range(3))
def test_gains_are_labels_of_another_name(seed: int) -> None:
    # pytrec_eval takes no gains, but labels that are the gains.
    gains = {1: 2, 2: 7, 3: 4}
    table = random_table(seed, scores=5, least=0)
    other = table.with_columns(pl.col("label").replace(gains))
    names = ["G", "ndcg", "ndcg_rel", "Rndcg"]
    measures = {name: rk.Measure(TREC[name].name, gains=gains) for name in names}
    compare(table, dict.fromkeys(names), 1, measures=measures, theirs=other)


def compare(
    table: pl.DataFrame,
    names: dict[str, str | None],
    level: int,
    *,
    measures: dict[str, rk.Measure] | None = None,
    theirs: pl.DataFrame | None = None,
) -> None:
    """All measures of these names, with the text of their parameters, as pytrec_eval has them."""
    asked = {name if text is None else f"{name}.{text}" for name, text in names.items()}
    theirs = table if theirs is None else theirs
    evaluator = pytrec_eval.RelevanceEvaluator(
        nested(theirs, "label"), asked, relevance_level=level
    )
    wanted = evaluator.evaluate(nested(theirs, "score"))
    if measures is None:
        measures = {}
        for name, m in ((n, m) for n, text in names.items() for m in trec_measures(n, text)):
            params = dict(m.params)
            if level != 1 and SPECS[m.name].rel:
                params["rel"] = level
            if m.name in ("iprec_at_recall", "11pt_avg"):
                params["version"] = 9
            # A name of one number stands there without its parameters.
            measures[m.line if TREC[name].each else name] = rk.Measure(m.name, **params)
    result = rk.per_query(table, *measures.values(), ties="doc")
    compared = 0
    for row in result.iter_rows(named=True):
        values = wanted.get(row["query_id"], {})
        for line, measure in measures.items():
            value = values.get(line, float("nan"))
            if line == "num_rel" or math.isnan(value):  # their num_rel knows no level
                continue
            assert same(row[str(measure)], value, 1e-6), (row["query_id"], line)
            compared += 1
    assert compared > len(measures)


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


@pytest.mark.parametrize("seed", range(3))
def test_ir_measures_in_ties(seed: int) -> None:
    # Each provider there has an order of its own for tied rows: trec_eval's, or documents from the first on.
    table = random_table(seed, scores=3, least=0).sort("doc_id")
    qrels, run = nested(table, "label"), nested(table, "score")
    ascending = {name for name in ADDED if name.startswith("Judged")}
    compared = 0
    for ours, theirs in ADDED.items():
        # Counts of relevant rows are rounded there, and tied rows stand as they come.
        if ours == "IPrec@0.1" or ours.startswith("Accuracy"):
            continue
        ties: Any = "order" if ours in ascending else "doc"
        values = dict(rk.per_query(table, ours, ties=ties).iter_rows())
        for metric in ir_measures.parse_measure(theirs).iter_calc(qrels, run):
            assert same(values[metric.query_id], metric.value, 1e-6), (ours, metric)
            compared += 1
    assert compared > 40


def test_aggregates_of_pytrec_eval() -> None:
    table = random_table(2, scores=4, least=0)
    names = ["gm_map", "gm_bpref", "map", "bpref", "num_q", "num_ret", "P_5"]
    evaluator = pytrec_eval.RelevanceEvaluator(nested(table, "label"), {"gm_map", "gm_bpref", "map", "bpref", "num_q", "num_ret", "P"})  # fmt: skip
    results = list(evaluator.evaluate(nested(table, "score")).values())
    ours = rk.evaluate(table, *names, ties="doc").row(0, named=True)
    for name in names:
        theirs = pytrec_eval.compute_aggregated_measure(name, [r[name] for r in results])
        # Counts are summed there, and their mean is ours.
        if name.startswith("num_"):
            theirs /= len(results)
        assert same(ours[str(rk.Measure.parse(name))], theirs, 1e-6), name


@pytest.mark.parametrize("ties", ["doc", "order", "best", "worst"])
def test_negative_labels_are_judged_by_nobody(ties: Any) -> None:
    # All but infAP, which tells pooled documents from others. With the tests above this pins every measure, which pytrec_eval
    # cannot do: it writes out of bounds where a label is negative.
    names = [n for n in TREC if n not in ("infAP", "num_q")]
    measures = parse_all(str(rk.Measure(m.name, **m.params)) for n in names for m in trec_measures(n, None))  # fmt: skip
    table = random_table(7, scores=4, least=-2)
    without = table.with_columns(label=pl.when(pl.col("label") >= 0).then("label"))
    for row, other in zip(
        rk.per_query(table, *measures, ties=ties).sort("query_id").iter_rows(named=True),
        rk.per_query(without, *measures, ties=ties).sort("query_id").iter_rows(named=True),
        strict=True,
    ):
        for measure in map(str, measures):
            assert same(row[measure], other[measure]), (row["query_id"], measure)


def by_definition(labels: list[int | None], unretrieved: list[int | None]) -> dict[str, float]:
    """What no other package computes, for labels in the order of the ranking."""
    judged = [x for x in labels if x is not None and x >= 0]
    relevant = [x for x in [*labels, *unretrieved] if x is not None and x > 0]
    inferred, above, pooled, precisions = 0.0, [0, 0], 0, 0.0
    for i, x in enumerate(labels):
        if x is not None and x > 0:
            # 1 for the row itself, and of the rows above the share of the pool times the precision of its judged part.
            precision = (above[1] + 1e-5) / (sum(above) + 2e-5)
            inferred += (1 + (sum(above) + pooled) * precision if i else 1) / (i + 1)
            precisions += (above[1] + 1) / (i + 1)
        if x is not None and x < 0:
            pooled += 1
        elif x is not None:
            above[x > 0] += 1
    graded = sum(0.1 * 0.9**i * max(x or 0, 0) for i, x in enumerate(labels))
    seen = sum(0.1 * 0.9**i for i, x in enumerate(labels) if x is not None and x >= 0)
    return {
        "infAP": inferred / len(relevant),
        "yaap": math.log((1 + precisions) / (1 + len(relevant) - precisions)),
        "rbp": graded / max(relevant),
        "rbp_resid": 1 - seen if len(judged) < len(labels) else 0.0,
        "unj@5": sum(x is None or x < 0 for x in labels[:5]) / 5,
        "num_nonrel_judged_ret": float(sum(x == 0 for x in labels)),
    }


@pytest.mark.parametrize("ties", ["doc", "order", "best", "worst"])
@pytest.mark.parametrize("seed", range(5))
def test_definitions(seed: int, ties: Any) -> None:
    table = random_table(seed, scores=[2, 5, 70][seed % 3], least=-2)
    null = -9  # no label stands behind all others under "best", and before them under "worst"
    keys = {
        "doc": (pl.col("doc_id"), True),
        "order": (pl.int_range(pl.len()), False),
        "best": (pl.col("label").fill_null(null), True),
        "worst": (pl.col("label").fill_null(null), False),
    }
    key, descending = keys[ties]
    compared = 0
    for query, rows in table.group_by("query_id", maintain_order=True):
        ranked = rows.drop_nulls("score").sort("score", key, descending=[True, descending])
        unretrieved = rows.filter(pl.col("score").is_null())["label"].to_list()
        labels = ranked["label"].to_list()
        if not any(x is not None and x > 0 for x in [*labels, *unretrieved]):
            continue
        wanted = by_definition(labels, unretrieved)
        values = rk.per_query(rows, *wanted, ties=ties).row(0, named=True)
        for name, value in wanted.items():
            assert same(values[name], value, 1e-10), (query, name)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("options", ["", "-l2", "-J", "-M20", "-c"])
@pytest.mark.parametrize("seed", range(2))
def test_the_command_is_pytrec_eval(
    options: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Scores that differ as Float64 and not as Float32, which is what version 9 compares.
    near = 1 + (pl.int_range(pl.len()) % 3) * 1e-10
    table = random_table(seed, scores=6, least=0).with_columns(pl.col("score") * near)
    rk.write_run(table, tmp_path / "run")
    rk.write_qrels(table, tmp_path / "qrels")
    files = [str(tmp_path / "qrels"), str(tmp_path / "run")]
    assert main(["--v9", "-q", "-m", "all_trec", *options.split(), *files]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    ours = {(query, name.strip()): value for name, query, value in lines}
    level = 2 if options == "-l2" else 1
    judged_only = {"judged_docs_only_flag": True} if options == "-J" else {}
    run = nested(table, "score")
    if options == "-M20":
        # It has no such option: the run is cut before. Equal scores are told apart by document there, from the last on.
        cut = table.drop_nulls("score").with_columns(pl.col("score").cast(pl.Float32))
        cut = cut.sort("score", "doc_id", descending=True).group_by("query_id").head(20)
        run = nested(cut, "score")
    evaluator = pytrec_eval.RelevanceEvaluator(
        nested(table, "label"), SINGLE, relevance_level=level, **judged_only
    )
    compared = 0
    for query, values in evaluator.evaluate(run).items():
        for name, value in values.items():
            if (query, name) in ours and name != "num_rel" and not math.isnan(value):
                assert abs(float(ours[query, name]) - value) <= 0.5001e-4, (query, name)
                compared += 1
    assert compared > 500


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
