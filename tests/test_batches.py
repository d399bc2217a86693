"""Contiguous tables: the numbers of the ordinary plan, wherever the batches are cut, and a plan that stays lazy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from oracle import TIES
from panel import PANEL
from polars_rankeval.batches import Seen
from polars_rankeval.chunks import whole_queries, whole_table
from strategies import Table, tables
from ways import WAYS, Way

NAMES = [str(m) for m in PANEL]
FEW = ["AP", "RR@5", "nDCG@5", "AUC", "NumRet"]
NAN = float("nan")


def assert_same(got: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Equal keys, equal values up to 1e-12."""
    assert_frame_equal(got, expected, rel_tol=1e-12, abs_tol=1e-12)


def table(queries: int = 6, length: int = 9) -> pl.DataFrame:
    """Two models inside each query, ties, unjudged and unretrieved rows; one query is longer than all others."""
    rows = [
        (f"q{q}", model, f"d{i:03}", (i * 7 + q) % 4 or None, (i * 5 + q) % 6 or None, float(q % 3))
        for q in range(queries)
        for i in range(length * (5 if q == 2 else 1))
        for model in ("m", "n")
    ]
    columns = ["query_id", "model", "doc_id", "label", "score", "weight"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        other=-pl.col("score").cast(pl.Float64)
    )


def plain(frame: pl.DataFrame, *names: str, **options: Any) -> pl.DataFrame:
    """The ordinary result."""
    result: pl.DataFrame = rk.per_query(frame, *names, **options)
    return result


# --- numbers --------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    drawn=tables(contiguous=True),
    ties=st.sampled_from(TIES),
    no_relevant=st.sampled_from(["zero", "null", "one"]),
    judged_only=st.booleans(),
    batch_rows=st.sampled_from([1, 2, 3, 7, None]),
    way=st.sampled_from(list(WAYS)),
)
def test_every_measure_is_that_of_the_ordinary_plan(
    drawn: Table,
    *,
    ties: str,
    no_relevant: str,
    judged_only: bool,
    batch_rows: int | None,
    way: str,
) -> None:
    names = [n for n in NAMES if "ERR" not in n]
    options: dict[str, Any] = {
        "ties": ties,
        "no_relevant": no_relevant,
        "judged_only": judged_only,
    }
    frame = drawn.to_frame()
    expected = plain(frame, *names, **options)
    got = WAYS[way](
        frame,
        lambda f: f.rankeval.per_query(*names, contiguous=True, batch_rows=batch_rows, **options),
    )
    assert got["query_id"].to_list() == list(drawn.by_query())
    assert_same(got.sort("query_id"), expected)


@pytest.mark.parametrize("batch_rows", [1, 2, 10, 17, 18, 19, 50, 1000, None])
@pytest.mark.parametrize("ties", TIES)
def test_borders_do_not_matter(ties: Any, batch_rows: int | None) -> None:
    options: dict[str, Any] = {"by": "model", "ties": ties}
    expected = plain(table(), *NAMES, **options)
    for frame in (table(), table().sort("model", maintain_order=True)):
        got = rk.per_query(frame, *NAMES, contiguous=True, batch_rows=batch_rows, **options)
        assert got.columns == expected.columns
        assert_same(got.sort("model", "query_id"), expected)


KEYS = {
    "rising": pl.col("q"),
    "falling": -pl.col("q"),
    "rising, then not": pl.when(pl.col("q") < 4).then("q").otherwise(-pl.col("q")),
    "far apart": (pl.col("q") - 3) * (2**62 // 3),
    "unsigned": pl.col("q").cast(pl.UInt64) + 2**63 - 3,
    "dates": pl.lit(date(1970, 1, 3)) - pl.duration(days=3) + pl.duration(days=pl.col("q")),
    "Boolean": pl.col("q") > 2,
    "floats": pl.col("q") / 2,
    "text": pl.format("q{}", "q"),
}


@pytest.mark.parametrize("batch_rows", [7, None])
@pytest.mark.parametrize("key", KEYS)
def test_keys_of_any_kind_in_any_order(key: str, batch_rows: int | None) -> None:
    query = pl.col("query_id").str.slice(1).cast(pl.Int64).alias("q")
    frame = table().with_columns(query).with_columns(KEYS[key].alias("query_id"))
    for score in ("score", ["score", "other"]):
        expected = plain(frame, "AP", "NumRet", score=score)
        got = plain(frame, "AP", "NumRet", score=score, contiguous=True, batch_rows=batch_rows)
        keys = frame["query_id"].unique(maintain_order=True)
        assert got["query_id"].unique(maintain_order=True).to_list() == keys.to_list()
        order = [name for name in ("score", "query_id") if name in got.columns]
        assert_same(got.sort(order), expected.select(got.columns).sort(order))


@pytest.mark.parametrize("batch_rows", [1, 20, None])
def test_means_groups_scores_and_weights(way: Way, batch_rows: int | None) -> None:
    for options in (
        {"by": "model"},
        {"query": ["query_id", "model"]},
        {"by": "model", "weight": "weight"},
        {"by": "model", "score": ["score", "other"], "weight": "weight"},
        {"by": "model", "no_relevant": "null"},
    ):
        frame = table().sort("query_id", "model", maintain_order=True)
        expected = rk.evaluate(frame, *FEW, **options)
        batched = partial(
            rk.evaluate, contiguous=True, batch_rows=batch_rows, **cast("Any", options)
        )
        got = way(frame, lambda f, function=batched: function(f, *FEW))  # type: ignore[misc]
        assert_same(got, expected)


@pytest.mark.parametrize("batch_rows", [1, 20, None])
def test_rows_stand_in_the_order_of_the_table(batch_rows: int | None) -> None:
    got = rk.per_query(
        table().sort("query_id", descending=True, maintain_order=True),
        "AP",
        by="model",
        score=["score", "other"],
        contiguous=True,
        batch_rows=batch_rows,
    )
    assert got.columns == ["model", "score", "query_id", "AP"]
    expected = [(q, m, s) for q in range(5, -1, -1) for m in "mn" for s in ("other", "score")]
    assert (
        got.select(pl.col("query_id").str.slice(1).cast(int), "model", "score").rows() == expected
    )


@pytest.mark.parametrize(
    "key",
    [
        pl.col("query_id").str.slice(1).cast(pl.UInt64) + 2**63,
        pl.col("query_id").cast(pl.Categorical),
        pl.col("query_id").str.slice(1).cast(pl.Float64),
        pl.col("query_id").str.slice(1).cast(pl.Int128),
        pl.date(2024, 1, 1) + pl.duration(days=pl.col("query_id").str.slice(1).cast(int)),
        pl.col("query_id").cast(pl.Binary),
    ],
    ids=["UInt64", "Categorical", "Float64", "Int128", "Date", "Binary"],
)
def test_keys_of_any_kind(key: pl.Expr) -> None:
    frame = table().with_columns(query_id=key)
    expected = plain(frame, *FEW, by="model")
    got = rk.per_query(frame, *FEW, by="model", contiguous=True, batch_rows=20)
    assert_same(got.sort("model", "query_id"), expected.sort("model", "query_id"))


def test_a_group_may_be_null() -> None:
    frame = table().with_columns(pl.col("model").replace("n", None))
    got = rk.per_query(frame, *FEW, by="model", contiguous=True, batch_rows=20)
    assert_same(got.sort("model", "query_id"), plain(frame, *FEW, by="model"))


def test_an_empty_table(way: Way) -> None:
    frame = table().clear()
    got = way(frame, lambda f: f.rankeval.per_query(*FEW, contiguous=True))
    assert_frame_equal(got, plain(frame, *FEW))
    got = way(frame, lambda f: f.rankeval.evaluate(*FEW, contiguous=True))
    assert got.row(0) == (0, *[None] * len(FEW))


# --- cuts -----------------------------------------------------------------------------------------


@given(
    lengths=st.lists(st.integers(1, 6), max_size=6),
    size=st.integers(1, 9),
)
def test_frames_are_cut_where_queries_end(lengths: list[int], size: int) -> None:
    queries = [q for q, n in enumerate(lengths) for _ in range(n)]
    frame = pl.DataFrame({"q": queries, "i": range(len(queries))}, schema={"q": int, "i": int})
    cut = list(whole_queries(list(frame.iter_slices(size)), ["q"]))
    assert pl.concat([frame.clear(), *cut]).equals(frame)
    assert sum(part["q"].n_unique() for part in cut) == len(lengths)


@pytest.mark.parametrize("size", [4000, 5000, 70_000, 100_000])
def test_long_queries_are_cut_where_they_end(size: int) -> None:
    lengths = [10, 4096, 4097, 70_000, 1, 5000]
    queries = [q for q, n in enumerate(lengths) for _ in range(n)]
    frame = pl.DataFrame({"q": queries, "i": range(len(queries))})
    cut = list(whole_queries(frame.iter_slices(size), ["q"]))
    assert pl.concat(cut).equals(frame)
    assert sum(part["q"].n_unique() for part in cut) == len(lengths)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True), max_size=9))
def test_what_was_seen(added: list[list[int]]) -> None:
    seen, known = Seen(), set[int]()
    for codes in added:
        ask = pl.Series([*codes, *list(known)[:3], 0], dtype=pl.Int64)
        assert seen.has(ask).to_list() == [code in known for code in ask]
        seen.add(pl.Series(codes, dtype=pl.Int64))
        known.update(codes)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [1, 3, None])
@pytest.mark.parametrize(
    "queries",
    [["a", "b", "a"], ["a", "a", "b", "c", "b"], [1, 2, 1], [1, 1, 2, 3, 2], [1, 3, 2, 2, 3]],
)
def test_a_query_that_comes_back(queries: list[Any], batch_rows: int | None) -> None:
    frame = pl.DataFrame({"query_id": queries, "label": 1, "score": 1.0})
    again = queries[-1]
    message = f"not contiguous: .*'query_id' .*for example query {again!r}.*partition_by_query"
    with pytest.raises(rk.RankEvalError, match=message):
        rk.per_query(frame, "AP", contiguous=True, batch_rows=batch_rows)
    with pytest.raises(rk.RankEvalError, match=message):
        rk.evaluate(frame.lazy(), "AP", contiguous=True, batch_rows=batch_rows).collect()


def test_a_query_that_comes_back_in_one_group_only() -> None:
    frame = pl.concat([table().filter(model="n"), table()])
    with pytest.raises(rk.RankEvalError, match="query model='n', query_id='q0'"):
        rk.per_query(frame, "AP", by="model", contiguous=True, batch_rows=30)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("score", NAN, "score column 'score' is NaN in 1 row, for example in query 'q4'"),
        ("label", math.inf, "label column 'label' is NaN or infinite in 1 row, .* query 'q4'"),
        ("query_id", None, "query column 'query_id' is null in 1 row"),
    ],
)
def test_bad_values_are_told_by_their_own_names(column: str, value: Any, message: str) -> None:
    frame = table().cast({"score": pl.Float64, "label": pl.Float64})
    row = pl.int_range(pl.len()) == frame.height - 20
    frame = frame.with_columns(pl.when(row).then(pl.lit(value)).otherwise(column).alias(column))
    for batch_rows in (10, None):
        with pytest.raises(rk.RankEvalError, match=message):
            rk.per_query(frame, "AP", contiguous=True, batch_rows=batch_rows)


def test_undefined_measures_are_told_by_their_query() -> None:
    frame = table().with_columns(label=pl.when(pl.col("query_id") != "q3").then("label"))
    with pytest.raises(rk.RankEvalError, match="for example query 'q3'"):
        rk.per_query(frame, "AP", contiguous=True, no_relevant="error")


def test_options_are_checked() -> None:
    with pytest.raises(rk.RankEvalError, match="batch_rows=0"):
        rk.per_query(table(), "AP", contiguous=True, batch_rows=0)
    with pytest.raises(rk.RankEvalError, match="add contiguous=True"):
        rk.per_query(table(), "AP", batch_rows=10)
    with pytest.raises(rk.RankEvalError, match="add contiguous=True"):
        rk.evaluate(table(), "AP", progress=True)


# --- laziness -------------------------------------------------------------------------------------


def spied(frame: pl.DataFrame) -> tuple[pl.LazyFrame, list[list[str] | None]]:
    """A lazy frame, and the columns of each time it is read."""
    reads: list[list[str] | None] = []

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        reads.append(columns)
        lazy = frame.lazy() if predicate is None else frame.lazy().filter(predicate)
        lazy = lazy if columns is None else lazy.select(columns)
        yield (lazy if rows is None else lazy.head(rows)).collect()

    return register_io_source(source, schema=frame.schema), reads


def test_nothing_is_read_before_it_is_wanted_and_only_what_is() -> None:
    lf, reads = spied(table())
    plan = lf.rankeval.per_query(*FEW, contiguous=True, batch_rows=7)  # type: ignore[attr-defined]
    mean = lf.rankeval.evaluate(*FEW, contiguous=True)  # type: ignore[attr-defined]
    assert plan.collect_schema() == {"query_id": pl.String, **dict.fromkeys(FEW, pl.Float64)}
    mean.collect_schema()
    assert reads == []
    plan.collect()
    assert [set(columns or ()) for columns in reads] == [{"query_id", "label", "score"}]


def test_the_result_composes(tmp_path: Path) -> None:
    lf = table().lazy()
    expected = plain(table(), *FEW, by="model")
    plan = rk.per_query(lf, *FEW, by="model", contiguous=True, batch_rows=25)
    plan.sink_parquet(tmp_path / "out.parquet")
    in_order = plan.collect()
    assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), in_order)
    assert_same(in_order.sort("model", "query_id"), expected)
    changes: list[Callable[[pl.LazyFrame], pl.LazyFrame]] = [
        lambda f: f.head(3),
        lambda f: f.tail(2),
        lambda f: f.slice(2, 4),
        lambda f: f.filter(pl.col("AP") > 0.5),
        lambda f: f.filter(pl.col("AP") > 0.5).head(2),
        lambda f: f.head(5).filter(pl.col("AP") > 0.5),
        lambda f: f.filter(pl.col("query_id") == "q2").select("AUC"),
        lambda f: f.select("query_id"),
        lambda f: f.select(pl.len()),
        lambda f: f.filter(pl.col("AP") > 0.5).select("model"),
        lambda f: f.join(f.select("model", "query_id", x="AP"), on=["model", "query_id"]).sort(
            "model", "query_id"
        ),
        lambda f: f.group_by("model").agg(pl.col("AP").max()).sort("model"),
    ]
    for change in changes:
        assert_frame_equal(change(plan).collect(), change(in_order.lazy()).collect())


def test_files_are_read_as_any_scan_reads_them(tmp_path: Path) -> None:
    for model, part in table().partition_by("model", as_dict=True).items():
        directory = tmp_path / f"model={model[0]}"
        directory.mkdir()
        part.drop("model").write_parquet(directory / "0.parquet", row_group_size=13)
    lf = pl.scan_parquet(tmp_path / "*/*.parquet", hive_partitioning=True)
    got = rk.per_query(lf, *FEW, by="model", contiguous=True, batch_rows=10).collect()
    assert_same(got.sort("model", "query_id"), plain(table(), *FEW, by="model"))


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    table(200).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(pl.exceptions.PolarsError, match=r"cut\.parquet|Parquet|parquet"):
        rk.per_query(pl.scan_parquet(path), "AP", contiguous=True).collect()


def damaged(path: Path) -> pl.LazyFrame:
    """A scan of a file whose footer is whole, and whose middle makes Polars panic."""
    # Nullable numbers in dictionaries, of which a part is missing.
    frame = pl.concat([table(20)] * 25).with_columns(query_id=pl.int_range(pl.len()) // 50)
    frame.write_parquet(path, row_group_size=500)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + whole[len(whole) * 5 // 8 :])
    return pl.scan_parquet(path)


def test_a_table_that_ends_early_is_an_error(tmp_path: Path) -> None:
    lf = damaged(tmp_path / "damaged.parquet")
    for plan in (
        rk.per_query(lf, "AP", contiguous=True, batch_rows=700),
        rk.evaluate(lf, "AP", contiguous=True),
    ):
        with pytest.raises(pl.exceptions.ComputeError, match=r"damaged\.parquet"):
            plan.collect()


def test_all_rows_are_known_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    lf = table().lazy()
    assert sum(frame.height for frame in whole_table(lf, 7)) == table().height
    assert sum(frame.height for frame in whole_table(lf.clear(), 7)) == 0
    read = pl.LazyFrame.collect_batches

    def stops(self: pl.LazyFrame, **options: Any) -> Iterator[pl.DataFrame]:
        """What a panic looks like."""
        return iter(list(read(self, **options))[:-1])

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", stops)
    with pytest.raises(pl.exceptions.ComputeError, match="stopped after 140 rows, before the end"):
        rk.evaluate(lf, "AP", contiguous=True, batch_rows=70).collect()


def test_progress_is_silent_where_no_one_looks(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    got = rk.evaluate(table().lazy(), "AP", contiguous=True, batch_rows=20, progress=True).collect()
    assert_same(got, rk.evaluate(table(), "AP"))
    assert capfd.readouterr() == ("", "")
