"""Spark: the rows and numbers of the local run from real executor processes, also when one is killed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from panel import PANEL

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

NAMES = [str(m) for m in PANEL]
FEW = ["AP", "RR@5", "nDCG@5", "P(rel=0.5)@5", "AUC", "NumRet"]
UNORDERED = ["block", "expected", "best", "worst", "doc"]


@pytest.fixture(scope="module")
def port() -> int:
    """A free one, for the server of Spark Connect."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def spark(port: int) -> Iterator[Any]:
    """Two executor processes of one core, and a server of Spark Connect."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Executors start elsewhere: they find the package where this process does.
    path = os.pathsep.join(dict.fromkeys(p for p in sys.path if p))
    session = (
        SparkSession.builder.master("local-cluster[2,1,2048]")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.executorEnv.POLARS_MAX_THREADS", "1")
        .config("spark.executor.memory", "1g")
        .config("spark.driver.host", "localhost")
        .appName(f"spark-{os.getpid()}")
        .config("spark.executor.extraJavaOptions", f"-Downer=spark-{os.getpid()}")
        .config("spark.ui.enabled", "false")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.port", str(port))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.DataFrame, str]:
    """Two models, string keys, unretrieved and unjudged rows, ties, one query with a tenth of all rows; as Parquet too."""
    rows = 20_000
    i = pl.int_range(rows)
    frame = (
        pl.select(i=i)
        .with_columns(
            query_id=pl.when(pl.col("i") % 10 == 0).then(0).otherwise(pl.col("i") * 7919 % 300),
            model=pl.when(pl.col("i") // 100 % 2 == 0).then(pl.lit("m")).otherwise(pl.lit("n")),
            doc_id=pl.format("d{}", pl.col("i")),
            label=pl.when(pl.col("i") * 31 % 11 < 9).then(pl.col("i") * 17 % 13 % 5),
            score=pl.when(pl.col("i") * 29 % 17 > 0).then((pl.col("i") * 37 % 101) / 8),
        )
        .with_columns(
            query_id=pl.format("q{}", "query_id"),
            weight=pl.col("query_id") % 4 + 1,
            other=-pl.col("score"),
        )
        .drop("i")
    )
    path: Path = tmp_path_factory.mktemp("spark") / "table.parquet"
    frame.write_parquet(path)
    return frame, str(path)


def to_polars(frame: Any) -> pl.DataFrame:
    """The rows of a Spark DataFrame."""
    return pl.DataFrame(frame.toArrow())


def assert_same(got: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Equal columns, dtypes and keys, values up to 1e-12."""
    assert_frame_equal(
        got, expected, rel_tol=1e-12, abs_tol=1e-12, check_row_order=True, check_dtypes=True
    )


@pytest.mark.parametrize("ties", UNORDERED)
def test_rows_are_those_of_the_local_run(
    spark: Any, table: tuple[pl.DataFrame, str], ties: Any
) -> None:
    from polars_rankeval import spark as rks

    frame, path = table
    names = NAMES if ties == "block" else FEW  # plans of all measures take seconds
    got = rks.per_query(spark.read.parquet(path), *names, by="model", ties=ties, batch_rows=2000)
    expected = rk.per_query(frame, *names, by="model", ties=ties)
    assert_same(to_polars(got).sort("model", "query_id"), expected)


def test_means(spark: Any, table: tuple[pl.DataFrame, str]) -> None:
    from polars_rankeval import spark as rks

    frame, path = table
    for options in (
        {},
        {"by": "model", "no_relevant": "null"},
        {"by": "model", "score": ["score", "other"], "weight": "weight"},
        {"query": ["model", "query_id"], "weight": "weight", "partitions": 3},
    ):
        got = to_polars(rks.evaluate(spark.read.parquet(path), *FEW, **options))
        options.pop("partitions", None)
        expected = rk.evaluate(frame, *FEW, **options)
        assert got["queries"].dtype == pl.Int64
        assert_same(got.cast({"queries": pl.UInt32}), expected)


def test_refusals(spark: Any, table: tuple[pl.DataFrame, str]) -> None:
    from polars_rankeval import spark as rks

    sdf = spark.read.parquet(table[1])
    with pytest.raises(rk.RankEvalError, match="ties='order'"):
        rks.per_query(sdf, "AP", ties="order")
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="'nothing' not found"):
        rks.per_query(sdf, "AP", label="nothing")
    nan = sdf.selectExpr("query_id", "label", "double('NaN') AS score")
    with pytest.raises(Exception, match="score column 'score' is NaN in"):
        rks.per_query(nan, "AP").toArrow()


@pytest.mark.usefixtures("spark")
def test_spark_connect(port: int, table: tuple[pl.DataFrame, str]) -> None:
    pytest.importorskip("grpc_status")
    from pyspark.sql.connect.session import SparkSession

    from polars_rankeval import spark as rks

    frame, path = table
    # No builder of pyspark.sql, which would set the environment for the sessions of other tests too.
    session = SparkSession.builder.remote(f"sc://localhost:{port}").create()
    try:
        sdf = session.read.parquet(path)
        got = to_polars(rks.per_query(sdf, *FEW, by="model", batch_rows=2000))
        assert_same(got.sort("model", "query_id"), rk.per_query(frame, *FEW, by="model"))
        options: dict[str, Any] = {"by": "model", "score": ["score", "other"], "weight": "weight"}
        for chosen in ({}, options):
            means = to_polars(rks.evaluate(sdf, *FEW, **chosen))
            assert_same(means.cast({"queries": pl.UInt32}), rk.evaluate(frame, *FEW, **chosen))
        nan = sdf.selectExpr("query_id", "label", "double('NaN') AS score")
        with pytest.raises(Exception, match="score column 'score' is NaN in"):
            rks.per_query(nan, "AP").toArrow()
    finally:
        session.stop()


def executors() -> list[int]:
    """Processes of executors that this one started, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            own = f"spark-{os.getpid()}".encode()
            if b"CoarseGrainedExecutorBackend" in command and own in command:
                found.append(int(entry.name))
    return found


def test_an_executor_is_killed(spark: Any, table: tuple[pl.DataFrame, str]) -> None:
    from polars_rankeval import spark as rks

    frame, path = table

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(0.2)
            yield batch

    sdf = spark.read.parquet(path).repartition(8)
    slow = sdf.mapInArrow(slowly, sdf.schema)
    killed: list[int] = []

    def kill() -> None:
        time.sleep(3)
        for pid in executors()[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    got = to_polars(rks.per_query(slow, *FEW, by="model", partitions=8))
    elapsed = killer.is_alive()
    killer.join()
    assert killed, "no executor was found"
    assert not elapsed, "the job was done before the executor was killed"
    assert_same(got.sort("model", "query_id"), rk.per_query(frame, *FEW, by="model"))
