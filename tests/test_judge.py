"""A run and its judgements become one table."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import polars_rankeval as rk

RUN = {"query_id": ["1", "1", "3"], "doc_id": ["a", "b", "a"], "score": [0.9, 0.4, 0.1]}
QRELS = {"query_id": ["1", "1", "2"], "doc_id": ["b", "c", "a"], "label": [1, 2, 1]}
ENGINES = ["in-memory", "streaming"]


def rows(table: pl.LazyFrame, engine: str = "auto") -> set[tuple[Any, ...]]:
    frame = table.collect(engine=engine)  # type: ignore[call-overload]
    assert frame.height == len(set(frame.rows()))
    return set(frame.rows())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_join(engine: str) -> None:
    answered = {("1", "a", None, 0.9), ("1", "b", 1, 0.4), ("1", "c", 2, None)}
    assert rows(rk.judge(RUN, QRELS), engine) == answered | {("2", "a", 1, None)}
    assert rows(rk.judge(RUN, QRELS, missing="drop"), engine) == answered


def test_queries_of_one_side() -> None:
    assert rk.unmatched(RUN, QRELS).collect().rows() == [("2", "qrels"), ("3", "run")]
    runs = pl.DataFrame({"run": ["A", "A", "B"], "query_id": ["1", "3", "4"]})
    assert rk.unmatched(runs, QRELS, by="run").collect().rows() == [
        ("A", "2", "qrels"),
        ("A", "3", "run"),
        ("B", "1", "qrels"),
        ("B", "2", "qrels"),
        ("B", "4", "run"),
    ]


def test_means_with_and_without_missing_queries() -> None:
    kept, dropped = (
        rk.evaluate(rk.judge(RUN, QRELS, missing=missing), "AP", ties="doc").collect()
        for missing in ("keep", "drop")
    )
    assert kept.row(0) == (2, pytest.approx(1 / 8))  # trec_eval -c
    assert dropped.row(0) == (1, pytest.approx(1 / 4))  # trec_eval


def test_a_run_that_answers_no_judged_query_scores_0() -> None:
    runs = pl.DataFrame(
        {"run": ["A", "B"], "query_id": ["1", "4"], "doc_id": ["b", "b"], "score": [1.0, 1.0]}
    )
    means = rk.evaluate(rk.judge(runs, QRELS, by="run"), "AP", by="run").collect().sort("run")
    assert means.rows() == [("A", 2, 0.25), ("B", 2, 0.0)]
    dropped = rk.judge(runs, QRELS, by="run", missing="drop").collect()
    assert set(dropped["run"]) == {"A"}


@pytest.mark.parametrize("missing", ["keep", "drop"])
def test_many_runs_are_many_tables(missing: Any) -> None:
    other = {"query_id": ["2", "1"], "doc_id": ["x", "c"], "score": [2.0, 1.0]}
    both = pl.concat(
        [
            pl.DataFrame(RUN).with_columns(run=pl.lit("A")),
            pl.DataFrame(other).with_columns(run=pl.lit("B")),
        ]
    )
    table = rk.judge(both, QRELS, by="run", missing=missing)
    for name, run in (("A", RUN), ("B", other)):
        one = table.filter(run=name).drop("run")
        assert rows(one) == rows(rk.judge(run, QRELS, missing=missing))
    means = rk.evaluate(table, "AP", by="run").collect()
    assert means["run"].to_list() == ["A", "B"]


def test_other_names_and_more_columns() -> None:
    run = pl.DataFrame(RUN).rename({"query_id": "q", "doc_id": "d", "score": "s"})
    run = run.with_columns(more=1, label=0)
    qrels = pl.DataFrame(QRELS).rename({"query_id": "q", "doc_id": "d", "label": "l"})
    table = rk.judge(run, qrels, query="q", doc="d", label="l", score="s").collect()
    assert table.columns == ["q", "d", "l", "s"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": {"doc_id": ["a", "a", "a"]}}, "document 'a' of query '1'"),
        ({"qrels": {"doc_id": ["b", "b", "a"]}}, "document 'b' of query '1'"),
        ({"run": {"query_id": ["1", None, "3"]}}, "query column 'query_id' is null"),
        ({"qrels": {"doc_id": ["b", None, "a"]}}, "document column 'doc_id' is null"),
    ],
)
def test_refused_when_the_plan_runs(
    change: dict[str, dict[str, Any]], message: str, engine: str
) -> None:
    table = rk.judge(RUN | change.get("run", {}), QRELS | change.get("qrels", {}))
    with pytest.raises(rk.RankEvalError, match=message):
        table.collect(engine=engine)  # type: ignore[call-overload]


def test_ids_of_two_dtypes() -> None:
    with pytest.raises(
        rk.RankEvalError, match=r"Int64 in the run and String .* cast it in the run"
    ):
        rk.judge(RUN | {"query_id": [1, 1, 3]}, QRELS)
    with pytest.raises(rk.RankEvalError, match="cast it in the judgements"):
        rk.judge(RUN, QRELS | {"doc_id": [1, 2, 3]})


def test_unknown_choice_and_missing_column() -> None:
    with pytest.raises(rk.RankEvalError, match="'keep', 'drop'"):
        rk.judge(RUN, QRELS, missing="yes")  # type: ignore[arg-type]
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="label"):
        rk.judge(RUN, {k: v for k, v in QRELS.items() if k != "label"})
