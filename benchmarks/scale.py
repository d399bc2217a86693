"""Tables larger than memory: `python -m benchmarks.scale` measures rows per second and peak memory, each in a fresh process."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.__main__ import fresh_process

MEASURES = ("AP", "RR", "nDCG@10")
DOCUMENTS = 1_000
#: Rows made at a time.
PART = 5_000_000


def write(path: Path, rows: int, *, scattered: bool) -> None:
    """A Parquet file (zstd) of queries of 1,000 rows, one after the other, or each row of any query."""
    random = np.random.default_rng(0)
    queries = rows // DOCUMENTS
    writer = None
    for start in range(0, rows, PART):
        count = min(PART, rows - start)
        if scattered:
            codes = random.integers(0, queries, count)
        else:
            codes = np.arange(start, start + count) // DOCUMENTS
        part = pa.table(
            {
                "query_id": codes * 7 + 100,
                "label": ((random.random(count) < 0.02) * random.integers(1, 4, count)).astype(
                    np.int8
                ),
                "score": random.random(count),
            }
        )
        writer = writer or pq.ParquetWriter(path, part.schema, compression="zstd")
        writer.write_table(part, row_group_size=1_000_000)
    if writer:
        writer.close()


def timed(work: str) -> tuple[float, float]:
    """Seconds and peak gigabytes of a statement in a fresh process."""
    code = (
        "import polars as pl, polars_rankeval as rk, time\n"
        f"M = {MEASURES}\n"
        "start = time.perf_counter()\n"
        f"{work}\n"
        "print(time.perf_counter() - start)\n"
        # Not ru_maxrss, which a new process inherits from the one that started it.
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    seconds, peak = fresh_process(code).split("\n")[:2]
    return float(seconds), float(peak.split()[1]) / 1e6


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument(
        "--directory", help="where the files are written and removed (1.2 GB for 100 million rows)"
    )
    parser.add_argument("--skip-scattered", action="store_true")
    parser.add_argument("--batch-rows", type=int)
    args = parser.parse_args()
    print(
        f"{', '.join(MEASURES)}; {os.cpu_count()} cores, {platform.machine()}, polars {pl.__version__}\n"
    )
    print(
        "| table | million rows | seconds | million rows a second | peak GB |\n|---|---|---|---|---|"
    )

    def report(name: str, rows: int, work: str) -> None:
        seconds, peak = timed(work)
        print(
            f"| {name} | {rows / 1e6:.0f} | {seconds:.1f} | {rows / 1e6 / seconds:.1f} | {peak:.2f} |",
            flush=True,
        )

    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        small, path, out = (
            Path(directory) / name for name in ("small.parquet", "t.parquet", "out.parquet")
        )
        write(small, 10_000_000, scattered=False)
        table = "pl.scan_parquet({!r})"
        report(
            "in memory",
            10_000_000,
            f"d = pl.read_parquet({str(small)!r}); start = time.perf_counter(); rk.evaluate(d, *M)",
        )
        small.unlink()
        write(path, args.rows, scattered=False)
        scan = table.format(str(path))
        options = f"contiguous=True, batch_rows={args.batch_rows}"
        report("contiguous, evaluate", args.rows, f"rk.evaluate({scan}, *M, {options}).collect()")
        report(
            "contiguous, per_query to Parquet",
            args.rows,
            f"rk.per_query({scan}, *M, {options}).sink_parquet({str(out)!r})",
        )
        path.unlink()
        if not args.skip_scattered:
            write(path, args.rows, scattered=True)
            report(
                "scattered, evaluate_files",
                args.rows,
                f"rk.evaluate_files({scan}, *M, output={str(out)!r})",
            )


if __name__ == "__main__":
    main()
