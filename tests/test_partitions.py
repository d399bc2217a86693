"""Tables in parts, and files in one call: the same numbers, whole output or none, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from oracle import TIES
from test_batches import FEW, NAMES, assert_same, damaged, table


def scattered() -> pl.DataFrame:
    """Rows of every query far apart; the order of rows inside a query is kept by a column."""
    return table(20).sample(fraction=1.0, shuffle=True, seed=1)


@pytest.mark.parametrize("partitions", [1, 3, 50, None])
def test_numbers_are_those_of_the_ordinary_plan(tmp_path: Path, partitions: int | None) -> None:
    parts: Any = rk.partition_by_query(
        scattered().lazy(), tmp_path / "parts", partitions=partitions
    )
    back: Any = rk.Partitions(tmp_path / "parts")
    assert back == parts
    assert_frame_equal(parts.scan().collect(), scattered(), check_row_order=False)
    queries = [part.select("query_id").unique() for part in map(pl.read_parquet, parts.parts)]
    assert pl.concat(queries).is_unique().all(), "a query lies in two parts"
    for ties in TIES:
        options: dict[str, Any] = {"by": "model", "ties": ties}
        expected = rk.per_query(scattered(), *NAMES, **options)
        got: pl.LazyFrame = rk.per_query(back, *NAMES, **options)
        assert_same(got.collect().sort("model", "query_id"), expected)
    options = {"by": "model", "score": ["score", "other"], "weight": "weight"}
    means: pl.LazyFrame = rk.evaluate(parts, *FEW, **options)
    assert_same(means.collect(), rk.evaluate(scattered(), *FEW, **options))


def test_an_empty_table(tmp_path: Path) -> None:
    parts: Any = rk.partition_by_query(scattered().clear(), tmp_path / "parts")
    got: pl.LazyFrame = rk.per_query(parts, "AP")
    assert_frame_equal(got.collect(), rk.per_query(scattered().clear(), "AP"))


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(rk.RankEvalError, match="partitions=0"):
        rk.partition_by_query(scattered(), tmp_path / "parts", partitions=0)
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="'nothing' not found"):
        rk.partition_by_query(scattered(), tmp_path / "parts", query="nothing")
    with pytest.raises(rk.RankEvalError, match="holds no table in parts"):
        rk.Partitions(tmp_path)
    parts: Any = rk.partition_by_query(scattered(), tmp_path / "parts", query=["query_id", "model"])
    with pytest.raises(rk.RankEvalError, match="not empty"):
        rk.partition_by_query(scattered(), tmp_path / "parts")
    with pytest.raises(rk.RankEvalError, match="partitioned by"):
        rk.per_query(parts, "AP")
    with pytest.raises(rk.RankEvalError, match="leave out partitions"):
        rk.evaluate_files(
            scattered(), "AP", output=tmp_path / "o.parquet", contiguous=True, partitions=3
        )
    assert sorted(os.listdir(tmp_path)) == ["parts"]


@pytest.mark.parametrize("contiguous", [True, False])
def test_files(tmp_path: Path, contiguous: bool) -> None:
    frame = table(20)
    frame.write_parquet(tmp_path / "in.parquet")
    options: dict[str, Any] = {"by": "model", "weight": "weight", "score": ["score", "other"]}
    for _ in range(2):  # the second replaces the output of the first
        got = rk.evaluate_files(
            tmp_path / "in.parquet",
            *FEW,
            output=tmp_path / "new" / "out.parquet",
            contiguous=contiguous,
            **options,
        )
        assert_same(got, rk.evaluate(frame, *FEW, **options))
        assert os.listdir(tmp_path / "new") == ["out.parquet"]
    written = pl.read_parquet(tmp_path / "new" / "out.parquet")
    assert written.columns == ["model", "score", "query_id", *FEW, "weight"]
    del options["weight"]
    expected = rk.per_query(frame, *FEW, **options)
    assert_same(written.drop("weight").sort("model", "score", "query_id"), expected)


@pytest.mark.parametrize("contiguous", [True, False])
def test_errors_leave_nothing_behind(tmp_path: Path, contiguous: bool) -> None:
    bad = table().with_columns(score=pl.lit(float("nan")))
    with pytest.raises(rk.RankEvalError, match="NaN"):
        rk.evaluate_files(bad, "AP", output=tmp_path / "out.parquet", contiguous=contiguous)
    assert os.listdir(tmp_path) == []
    cut = tmp_path / "cut.parquet"
    table(200).write_parquet(cut)
    cut.write_bytes(cut.read_bytes()[:-500])
    with pytest.raises(pl.exceptions.PolarsError, match=r"cut\.parquet"):
        rk.evaluate_files(cut, "AP", output=tmp_path / "out.parquet", contiguous=contiguous)
    assert os.listdir(tmp_path) == ["cut.parquet"]


class Bar:
    """What stands in for tqdm on a terminal."""

    drawn: ClassVar[list[Bar]] = []
    disable = False

    def __init__(self, *, total: int | None, desc: str, **_options: Any) -> None:
        self.total, self.desc, self.done = total, desc, 0
        self.drawn.append(self)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def update(self, rows: int) -> None:
        self.done += rows


@pytest.mark.parametrize("partitions", [None, 3])
def test_both_passes_show_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int | None
) -> None:
    pytest.importorskip("tqdm.auto")
    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    monkeypatch.setattr(Bar, "drawn", [])
    frame = scattered()
    frame.write_parquet(tmp_path / "in.parquet")
    got = rk.evaluate_files(
        tmp_path / "in.parquet",
        *FEW,
        output=tmp_path / "out.parquet",
        partitions=partitions,
        progress=True,
    )
    assert_same(got, rk.evaluate(frame, *FEW))
    shown = [(bar.desc, bar.total, bar.done) for bar in Bar.drawn]
    n = frame.height
    assert shown == [("written in parts", n, n), ("evaluated", n, n)]


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_damaged_file_is_named_and_leaves_nothing(tmp_path: Path, contiguous: bool) -> None:
    damaged(tmp_path / "damaged.parquet")
    for source in (tmp_path / "damaged.parquet", str(tmp_path / "*.parquet")):
        with pytest.raises(pl.exceptions.ComputeError, match=r"damaged\.parquet|\*\.parquet"):
            rk.evaluate_files(
                source, "AP", output=tmp_path / "out" / "o.parquet", contiguous=contiguous
            )
    assert os.listdir(tmp_path / "out") == []


def test_tasks_that_outlive_an_error_leave_nothing(tmp_path: Path) -> None:
    """Files that a sink was about to open when it failed are opened all the same."""
    lf = damaged(tmp_path / "damaged.parquet")
    for _ in range(20):
        with pytest.raises((pl.exceptions.ComputeError, pl.exceptions.PanicException)):
            rk.partition_by_query(lf, tmp_path / "parts", partitions=20)
    time.sleep(0.5)
    assert os.listdir(tmp_path) == ["damaged.parquet"]


# --- faults ---------------------------------------------------------------------------------------

#: Slow enough to be stopped half-way.
WORK = """
import sys, polars as pl, polars_rankeval as rk
def slow(frame):
    import time
    time.sleep(0.2)
    return frame
path, contiguous = sys.argv[1], sys.argv[2] == "True"
t = pl.scan_parquet(path + "/in.parquet")
t = pl.concat([
    t.with_columns(pl.col("query_id") + f"_{i}").map_batches(slow, streamable=True, schema=t.collect_schema())
    for i in range(100)
])
print("started", flush=True)
rk.evaluate_files(t, "AP", output=path + "/out.parquet", partitions=None if contiguous else 4, contiguous=contiguous)
"""


def stopped(path: Path, contiguous: bool, how: signal.Signals) -> str:
    """Start the work, stop it half-way; what it wrote to stderr."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, "-c", WORK, str(path), str(contiguous)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(1.5)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        assert process.returncode != 0, "it was done before it was stopped"
    return errors


@pytest.mark.parametrize("contiguous", [True, False])
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, contiguous: bool) -> None:
    table(5).write_parquet(tmp_path / "in.parquet")
    errors = stopped(tmp_path, contiguous, signal.SIGINT)
    assert "KeyboardInterrupt" in errors
    assert os.listdir(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize("contiguous", [True, False])
def test_sigkill_leaves_no_output(tmp_path: Path, contiguous: bool) -> None:
    table(5).write_parquet(tmp_path / "in.parquet")
    stopped(tmp_path, contiguous, signal.SIGKILL)
    assert not (tmp_path / "out.parquet").exists()
    rk.evaluate_files(
        tmp_path / "in.parquet", "AP", output=tmp_path / "out.parquet", contiguous=contiguous
    )
    assert_same(
        pl.read_parquet(tmp_path / "out.parquet").sort("query_id"), rk.per_query(table(5), "AP")
    )


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_full_disk_is_an_error_without_output(tmp_path: Path, contiguous: bool) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a small disk")
    try:
        n = 200_000
        big = pl.DataFrame({"query_id": range(n), "label": 1, "score": range(n)})
        with pytest.raises((OSError, pl.exceptions.PolarsError), match="No space left"):
            rk.evaluate_files(big, "AP", output=disk / "out.parquet", contiguous=contiguous)
        assert os.listdir(disk) == []
        if not contiguous:
            with pytest.raises((OSError, pl.exceptions.PolarsError), match="No space left"):
                rk.evaluate_files(big, "AP", output=tmp_path / "o.parquet", temporary=disk)
            assert os.listdir(disk) == []
            assert os.listdir(tmp_path) == ["disk"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_manifest_says_what_it_was(tmp_path: Path) -> None:
    rk.partition_by_query(scattered(), tmp_path / "parts", partitions=7)
    manifest = json.loads((tmp_path / "parts" / "partitions.json").read_text())
    assert manifest == {"query": ["query_id"], "partitions": 7}
