"""Print how long each way takes, side by side in one run: `python -m benchmarks [--peers]`."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import polars as pl

import polars_rankeval as rk
from benchmarks.data import CASES, Case
from benchmarks.kernel import kernel
from benchmarks.peers import MEASURES, group_by_agg, pytrec_eval
from benchmarks.timing import agree, seconds

THREADS = 2


def measure(case: Case, times: int, *, peers: bool) -> list[str]:
    """A row of the table."""
    table, codes = case.make()
    score, label = table["score"].to_numpy(), table["label"].to_numpy()
    wanted = kernel(codes, score, label, case.queries).mean(axis=0)
    agree("evaluate", rk.evaluate(table, *MEASURES).row(0)[1:], wanted, 1e-9)
    # In turn, so that a busy moment of the machine falls on all.
    rounds = [
        (
            seconds(lambda: kernel(codes, score, label, case.queries), 1),
            seconds(lambda: rk.evaluate(table, *MEASURES), 1),
            seconds(lambda: rk.evaluate(table.lazy(), *MEASURES).collect(), 1),
        )
        for _ in range(times)
    ]
    native, eager, lazy = (min(column) for column in zip(*rounds, strict=True))
    row = [
        case.name,
        f"{native:.2f}",
        f"{eager:.2f}",
        f"{eager / native:.2f}",
        f"{lazy / eager:.2f}",
    ]
    if peers:
        untied = case.decimals is None
        if untied:
            agree("group_by().agg", group_by_agg(table), wanted, 1e-6)
            agree("pytrec_eval", pytrec_eval(table), wanted, 1e-6)
        row.append(f"{seconds(lambda: group_by_agg(table), 2) / eager:.1f}")
        row.append(f"{seconds(lambda: pytrec_eval(table), 1) / eager:.0f}")
    return row


def fresh_process(code: str) -> str:
    """What a new interpreter prints."""
    # As installed packages are: compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout


def import_cost() -> float:
    """Milliseconds that importing the package costs beyond importing Polars, the best of several."""
    code = (
        "import time, polars; start = time.perf_counter(); import polars_rankeval; "
        "print((time.perf_counter() - start) * 1000)"
    )
    return min(float(fresh_process(code)) for _ in range(5))


def peak_memory() -> float:
    """Gigabytes that a fresh process takes at most to evaluate 10 million rows of a Parquet file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scored.parquet"
        CASES[0].make()[0].write_parquet(path)
        code = (
            "import polars as pl, polars_rankeval as rk; "
            f"pl.scan_parquet({str(path)!r}).rankeval.evaluate(*{MEASURES}).collect(); "
            # Not ru_maxrss, which a new process inherits from the one that started it.
            "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        return float(fresh_process(code).split()[1]) / 1e6


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--peers", action="store_true", help="measure pytrec_eval and group_by().agg too"
    )
    parser.add_argument("--times", type=int, default=7, help="take the best of so many (default 7)")
    args = parser.parse_args()
    numba.set_num_threads(THREADS)
    print(
        f"{', '.join(MEASURES)}; seconds, best of {args.times}; {os.cpu_count()} cores, {platform.machine()}"
    )
    print(
        f"Python {platform.python_version()}, polars {pl.__version__}, numba {numba.__version__}\n"
    )
    header = ["table", "kernel s", "evaluate s", "evaluate / kernel", "lazy / evaluate"]
    if args.peers:
        header += ["group_by().agg / evaluate", "pytrec_eval / evaluate"]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header), flush=True)
    for case in CASES:
        print("| " + " | ".join(measure(case, args.times, peers=args.peers)) + " |", flush=True)
    print(f"\nimport: {import_cost():.0f} ms beyond polars")
    print(f"peak memory, 10 million rows from Parquet in a fresh process: {peak_memory():.2f} GB")


if __name__ == "__main__":
    main()
