"""Tables larger than memory: `python -m benchmarks.scale` measures rows per second and peak memory, each in a fresh process."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_rankeval as rk
from benchmarks.timing import agree

MEASURES = ("AP", "RR", "nDCG@10")
DOCUMENTS = 1_000
#: Rows made at a time, of a row group and of a file.
PART, GROUP, FILE = 5_000_000, 1_000_000, 10_000_000
#: Bytes a row on disk, with room: a table has 8 or 10; the parts of a scattered one come beside it.
CONTIGUOUS_BYTES, SCATTERED_BYTES = 9, 30


@dataclass(frozen=True)
class Run:
    """What a fresh process measured."""

    seconds: float
    cpu: float
    peak: float
    means: list[float]


def write(directory: Path, rows: int, *, scattered: bool) -> None:
    """Parquet files (zstd) of queries of 1,000 rows, one after the other, or each row of any query."""
    random = np.random.default_rng(0)
    queries = max(1, rows // DOCUMENTS)
    writer = None
    directory.mkdir()
    for start in range(0, rows, PART):
        count = min(PART, rows - start)
        if scattered:
            codes = random.integers(0, queries, count)
        else:
            codes = np.arange(start, start + count) // DOCUMENTS
        labels = (random.random(count) < 0.02) * random.integers(1, 4, count)
        part = pa.table(
            {
                "query_id": codes * 7 + 100,
                "label": labels.astype(np.int8),
                "score": random.random(count),
            }
        )
        if start % FILE == 0:
            if writer:
                writer.close()
            path = directory / f"{start // FILE:03}.parquet"
            writer = pq.ParquetWriter(path, part.schema, compression="zstd")
        assert writer is not None
        writer.write_table(part, row_group_size=GROUP)
    if writer:
        writer.close()


def run(setup: str, work: str, times: int) -> Run:
    """Run an expression that gives the means in a fresh process, the best of several."""
    code = f"""
import json, time
import polars as pl, polars_rankeval as rk
M = {MEASURES}
{setup}
runs = []
for _ in range({times}):
    start, cpu = time.perf_counter(), time.process_time()
    means = {work}
    runs.append((time.perf_counter() - start, time.process_time() - cpu))
# Not ru_maxrss, which a new process inherits from the one that started it.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([*min(runs), int(peak.split()[1]) / 1e6, list(means.select(M).row(0))]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"a run failed with code {done.returncode}")
    return Run(*json.loads(done.stdout))


def gigabytes(directory: Path) -> float:
    """Size of the files."""
    return sum(path.stat().st_size for path in directory.iterdir()) / 1e9


def machine() -> str:
    """Cores, processor and memory, as Linux tells them."""
    told = Path("/proc/cpuinfo").read_text()
    names = [line.split(":")[1].strip() for line in told.splitlines() if "model name" in line]
    memory = Path("/proc/meminfo").read_text().split()[1]
    model = names[0] if names else platform.machine()
    return f"{os.cpu_count()} cores ({model}), {int(memory) / 1e6:.0f} GB of memory"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[100_000_000],
        help="sizes, such as 100_000_000 1_000_000_000; scattered rows are measured at the first only",
    )
    parser.add_argument("--contiguous-only", action="store_true", help="no scattered rows")
    parser.add_argument(
        "--memory-rows",
        type=int,
        default=10_000_000,
        help="rows of the run in memory that the others are compared with (default 10 million)",
    )
    parser.add_argument("--times", type=int, default=3, help="take the best of so many")
    parser.add_argument("--batch-rows", type=int, help="as in evaluate")
    parser.add_argument(
        "--directory",
        help="where files are written and removed: 8 GB a billion rows, 30 for scattered ones",
    )
    args = parser.parse_args()

    needed = max(
        CONTIGUOUS_BYTES * max(args.rows),
        0 if args.contiguous_only else SCATTERED_BYTES * args.rows[0],
    )
    free = shutil.disk_usage(args.directory or tempfile.gettempdir()).free
    if free < needed:
        parser.error(
            f"about {needed / 1e9:.0f} GB of disk are needed and {free / 1e9:.0f} are free: choose another --directory or fewer --rows"
        )

    print(f"{', '.join(MEASURES)}; queries of {DOCUMENTS} rows; {machine()}")
    print(
        f"Python {platform.python_version()}, polars {pl.__version__}, polars-rankeval {rk.__version__}, {pl.thread_pool_size()} threads\n"
    )
    print(
        "| table | million rows | GB on disk | seconds | CPU seconds | million rows a second | of the rate in memory | peak GB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    rate = None

    def report(name: str, rows: int, size: str, got: Run) -> float:
        own = rows / got.seconds
        print(
            f"| {name} | {rows / 1e6:,.0f} | {size} | {got.seconds:.1f} | {got.cpu:.1f} | {own / 1e6:.1f} "
            f"| {'' if rate is None else f'{own / rate:.2f}'} | {got.peak:.2f} |",
            flush=True,
        )
        return own

    with tempfile.TemporaryDirectory(dir=args.directory) as scratch:
        table, output = Path(scratch) / "table", Path(scratch) / "out.parquet"
        scan = f"t = pl.scan_parquet({str(table / '*.parquet')!r})"
        options = f"contiguous=True, batch_rows={args.batch_rows}"
        for rows in args.rows:
            write(table, rows, scattered=False)
            size = f"{gigabytes(table):.1f}"
            if rate is None:
                held = min(args.memory_rows, rows)
                got = run(
                    f"{scan}.head({held}).collect().rechunk()", "rk.evaluate(t, *M)", args.times
                )
                rate = report("in memory, evaluate", held, "", got)
            whole = run(scan, f"rk.evaluate(t, *M, {options}).collect()", args.times)
            report("contiguous, evaluate", rows, size, whole)
            work = f"rk.evaluate_files(t, *M, {options}, output={str(output)!r})"
            got = run(scan, work, args.times)
            agree("contiguous, evaluate_files", got.means, whole.means, 1e-9)
            report("contiguous, evaluate_files", rows, size, got)
            output.unlink()
            shutil.rmtree(table)
        if not args.contiguous_only:
            rows = args.rows[0]
            write(table, rows, scattered=True)
            work = f"rk.evaluate_files(t, *M, output={str(output)!r})"
            got = run(scan, work, args.times)
            report("scattered, evaluate_files", rows, f"{gigabytes(table):.1f}", got)


if __name__ == "__main__":
    main()
