"""One table in every form that `scan` takes: the numbers are the same. And what is refused."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk

TABLE = rk.sample().collect()
MEASURES = ["AP", "RR", "nDCG@10", "P(rel=2)@5", "ERR@5", "Judged@5", "NumRel"]


def _file(write: Callable[[Path], Any], name: str) -> Callable[[Path], Any]:
    def make(directory: Path) -> Path:
        write(directory / name)
        return directory / name

    return make


def _zipped(directory: Path) -> str:
    path = directory / "t.csv.gz"
    path.write_bytes(gzip.compress(TABLE.write_csv().encode()))
    return str(path)


def _zstd(directory: Path) -> str:
    path = directory / "t.ndjson.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(TABLE.write_ndjson().encode())
    return str(path)


def _parts(directory: Path, kind: str = "parquet") -> list[Path]:
    paths = []
    for i, part in enumerate(TABLE.iter_slices(50)):
        paths.append(directory / f"part-{i}.{kind}")
        getattr(part, f"write_{kind}")(paths[-1])
    return paths


def _hive(directory: Path) -> str:
    for (model,), part in TABLE.partition_by("model", as_dict=True).items():
        (directory / f"model={model}").mkdir()
        part.drop("model").write_parquet(directory / f"model={model}" / "0.parquet")
    (directory / "_SUCCESS").touch()
    return str(directory)


def _delta(directory: Path) -> str:
    pytest.importorskip("deltalake")
    TABLE.write_delta(directory / "delta")
    return str(directory / "delta")


def _delta_table(directory: Path) -> Any:
    return pytest.importorskip("deltalake").DeltaTable(_delta(directory))


def _reader(directory: Path) -> pa.RecordBatchReader:
    del directory
    table = TABLE.to_arrow()
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=40))


def _dataset(directory: Path) -> pds.Dataset:
    TABLE.write_parquet(directory / "t.parquet")
    return pds.dataset(str(directory / "t.parquet"))


class Stream:
    """Has the Arrow stream interface, and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.to_arrow().__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "LazyFrame": lambda _: TABLE.lazy(),
    "dict": lambda _: TABLE.to_dict(as_series=False),
    "Parquet": _file(TABLE.write_parquet, "t.parquet"),
    "IPC": _file(TABLE.write_ipc, "t.arrow"),
    "CSV": _file(TABLE.write_csv, "t.csv"),
    "upper case": _file(TABLE.write_csv, "T.CSV"),
    "TSV": _file(lambda path: TABLE.write_csv(path, separator="\t"), "t.tsv"),
    "NDJSON": _file(TABLE.write_ndjson, "t.ndjson"),
    "brackets in the name": _file(TABLE.write_ndjson, "t[1].jsonl"),
    "CSV gzipped": _zipped,
    "NDJSON zstd": _zstd,
    "list": _parts,
    "list of CSV": lambda directory: _parts(directory, "csv"),
    "glob": lambda directory: _parts(directory)[0].parent / "part-*.parquet",
    "directory": lambda directory: _parts(directory)[0].parent,
    "Hive partitions": _hive,
    "Delta path": _delta,
    "Delta table": _delta_table,
    "Arrow table": lambda _: TABLE.to_arrow(),
    "Arrow record batch": lambda _: TABLE.to_arrow().combine_chunks().to_batches()[0],
    "Arrow reader": _reader,
    "Arrow dataset": _dataset,
    "Arrow stream": lambda _: Stream(),
    "pandas": lambda _: TABLE.to_pandas(),
    "DuckDB": lambda _: pytest.importorskip("duckdb").from_arrow(TABLE.to_arrow()),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("function", ["evaluate", "per_query"])
def test_same_numbers(kind: str, function: str, tmp_path: Path) -> None:
    call = getattr(rk, function)
    result = call(SOURCES[kind](tmp_path), *MEASURES, by="model")
    assert isinstance(result, pl.LazyFrame)
    expected = call(TABLE, *MEASURES, by="model")
    assert_frame_equal(result.collect(), expected, abs_tol=1e-12, rel_tol=0)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_function_takes_it(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    rows = rk.tie_blocks(source, by="model").collect().height
    assert rows == rk.tie_blocks(TABLE, by="model").height
    if kind != "Arrow reader":
        assert rk.check(source, by="model").collect().height == TABLE.height


def test_iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    arrow = TABLE.with_columns(pl.col("label").cast(pl.Int32)).to_arrow()
    table = catalog.create_table("n.t", schema=arrow.schema)
    table.append(arrow.slice(0, 100))
    table.append(arrow.slice(100))
    expected = rk.evaluate(TABLE, *MEASURES, by="model")
    for source in (table, table.location().removeprefix("file://")):
        result = rk.evaluate(rk.scan(source), *MEASURES, by="model").collect()
        assert_frame_equal(result, expected, abs_tol=1e-12, rel_tol=0)


# --- readers --------------------------------------------------------------------------------------


def test_reader_is_read_once(tmp_path: Path) -> None:
    lazy = rk.scan(_reader(tmp_path))
    plan = rk.evaluate(lazy, "AP", "nDCG@10", ties="doc", by="model")
    assert plan.collect().height == 2
    with pytest.raises(rk.RankEvalError, match=r"read already.*make a new reader.*collect"):
        plan.collect()


def test_reader_is_read_as_far_as_needed(tmp_path: Path) -> None:
    assert rk.scan(_reader(tmp_path)).head(3).collect().height == 3
    assert rk.scan(_reader(tmp_path)).select("label").collect().width == 1
    filtered = rk.scan(_reader(tmp_path)).filter(pl.col("label") > 1).collect()
    assert_frame_equal(filtered, TABLE.filter(pl.col("label") > 1))


def test_reader_streams() -> None:
    """Batches are asked for one by one: the source may be larger than memory."""
    schema = pa.schema([("query_id", pa.int64()), ("label", pa.int8()), ("score", pa.float64())])
    asked = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal asked
        for i in range(1000):
            asked += 1
            yield pa.record_batch([[i, i], [1, 0], [0.5, 0.25]], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    assert rk.scan(reader).head(10).collect().height == 10
    assert asked < 1000


def test_contiguous_reader_is_pulled_as_results_are() -> None:
    schema = pa.schema([("query_id", pa.int64()), ("label", pa.int64()), ("score", pa.float64())])
    queries, pulled = 1000, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal pulled
        for i in range(queries):
            pulled += 1
            yield pa.record_batch([[i] * 50, [0, 1] * 25, [float(-j) for j in range(50)]], schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    plan = rk.per_query(reader, "RR", contiguous=True, batch_rows=500)
    assert pulled == 0
    results = plan.collect_batches(chunk_size=10, maintain_order=True, lazy=True)
    rows = next(results).height
    # What runs ahead is bounded by the workers and the engine, not by the table.
    assert pulled < queries / 4
    for frame in results:
        rows += frame.height
        assert frame["RR"].to_list() == [0.5] * frame.height
    assert rows == pulled == queries


@pytest.mark.slow
def test_contiguous_reader_in_bounded_memory() -> None:
    code = """
import numpy as np, pyarrow as pa, polars_rankeval as rk
random, batches, rows = np.random.default_rng(0), 60, 100_000
def batch(number):
    label = (random.random(rows) < 0.02).astype(np.int8)
    more = {f"feature_{i}": random.random(rows) for i in range(20)}
    query = np.arange(number * rows, (number + 1) * rows) // 1000
    return pa.RecordBatch.from_pydict({"query_id": query, "label": label, "score": random.random(rows), **more})
reader = pa.RecordBatchReader.from_batches(batch(0).schema, map(batch, range(batches)))
result = rk.evaluate(reader, "AP", "nDCG@10", contiguous=True, batch_rows=rows).collect()
assert result["queries"].item() == batches * rows // 1000
# Not ru_maxrss, which a new process inherits from the one that started it.
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The rows take 1.06 GB.
    assert int(done.stdout.split()[1]) < 850_000


def test_reader_of_no_batches() -> None:
    empty = TABLE.head(0).to_arrow()
    reader = pa.RecordBatchReader.from_batches(empty.schema, [])
    assert rk.per_query(rk.scan(reader), "AP").collect().height == 0


# --- what is read ---------------------------------------------------------------------------------


def test_only_needed_columns_are_read(tmp_path: Path) -> None:
    plan = rk.evaluate(_dataset(tmp_path), "AP").explain()
    assert "PROJECT */5" not in plan
    TABLE.write_parquet(tmp_path / "u.parquet")
    plan = rk.evaluate(rk.scan(tmp_path / "u.parquet"), "AP").explain()
    assert "/5 COLUMNS" in plan
    assert "PROJECT */5" not in plan


def test_pandas_nan_is_null() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": [1.0, float("nan")]}, index=[7, 8])
    assert rk.scan(frame).collect().to_dict(as_series=False) == {"label": [1.0, None]}


def test_scores_that_start_whole(tmp_path: Path) -> None:
    scores = [1] * 5000 + [0.5]
    path = tmp_path / "t.csv"
    path.write_text("query_id,label,score\n" + "".join(f"1,1,{s}\n" for s in scores))
    assert rk.scan(path).collect()["score"][-1] == 0.5


# --- refusals -------------------------------------------------------------------------------------


def test_missing(tmp_path: Path) -> None:
    (tmp_path / "scored.csv").write_text("a\n")
    with pytest.raises(
        rk.RankEvalError, match=r"no such file: .*scord.csv.*did you mean.*scored\.csv"
    ):
        rk.scan(tmp_path / "scord.csv")
    with pytest.raises(rk.RankEvalError, match=r"no such file.*nor a directory"):
        rk.scan(tmp_path / "nowhere" / "scored.csv")
    with pytest.raises(rk.RankEvalError, match=r"no such file or directory.*did you mean"):
        rk.scan(tmp_path / "scored.cvs")
    with pytest.raises(rk.RankEvalError, match="no file matches"):
        rk.scan(tmp_path / "*.parquet")
    with pytest.raises(rk.RankEvalError, match="no such file"):
        rk.scan([tmp_path / "scored.csv", tmp_path / "other.csv"])


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.ndjson", "t.arrow", "t.csv.gz"])
def test_empty_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    for source in (tmp_path / name, tmp_path, tmp_path / "t.*", [tmp_path / name]):
        with pytest.raises(rk.RankEvalError, match=r"is empty \(0 bytes\)"):
            rk.scan(source)


def test_compressed_where_it_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "t.parquet.gz").write_bytes(b"x")
    with pytest.raises(rk.RankEvalError, match="cannot tell the format"):
        rk.scan(tmp_path / "t.parquet.gz")


def test_directories(tmp_path: Path) -> None:
    with pytest.raises(rk.RankEvalError, match="has no files"):
        rk.scan(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(rk.RankEvalError, match=r"has no Parquet.*'notes.txt'"):
        rk.scan(tmp_path)
    TABLE.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(rk.RankEvalError, match=r"several kinds.*name those you mean.*\*\.parquet"):
        rk.scan(tmp_path)


def test_remote_without_suffix() -> None:
    with pytest.raises(rk.RankEvalError, match=r"end it with '/'.*scan_delta"):
        rk.scan("s3://bucket/table")


def test_svmlight_is_another_function(tmp_path: Path) -> None:
    with pytest.raises(rk.RankEvalError, match="scan_svmlight"):
        rk.scan(tmp_path / "train.svm")


def test_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_delta_log").mkdir()

    def absent(path: str) -> pl.LazyFrame:
        raise ImportError(path)

    monkeypatch.setattr(pl, "scan_delta", absent)
    with pytest.raises(rk.RankEvalError, match="pip install deltalake"):
        rk.scan(tmp_path)
