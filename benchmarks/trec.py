"""`rankeval trec` against pytrec_eval, from text files to official measures: `python -m benchmarks.trec [--lines N]`.

Each runs in a process of its own, and reads the files itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

DEPTH = 1000

# VmHWM, not ru_maxrss, which a new process inherits from the one that started it.
REPORT = """
import time
start = time.perf_counter()
{body}
seconds = time.perf_counter() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print("RESULT", seconds, int(peak) / 1e6, file=__import__("sys").stderr)
"""
# What the console script does, but for leaving.
OURS = """
import os, sys
os._exit = lambda code: None
from polars_rankeval.cli import script
sys.argv = ["rankeval", "trec", "-m", "official", {qrels!r}, {run!r}]
script()
"""
PEER = """
import math, pytrec_eval
with open({qrels!r}) as file:
    qrels = pytrec_eval.parse_qrel(file)
with open({run!r}) as file:
    run = pytrec_eval.parse_run(file)
results = pytrec_eval.RelevanceEvaluator(qrels, {{"official"}}).evaluate(run)
for name in next(iter(results.values())):
    value = pytrec_eval.compute_aggregated_measure(name, [r[name] for r in results.values()])
    print(f"{{name:<22}}\\tall\\t{{value:6.4f}}")
"""


def write(directory: Path, lines: int) -> dict[str, str]:
    """A run of so many lines, a thousand to a topic, and judgements of two in a hundred of its documents."""
    random = np.random.default_rng(0)
    topics = max(lines // DEPTH, 1)
    # A stride through the collection makes documents that differ within a topic.
    first = np.repeat(random.integers(0, 8_000_000, topics), DEPTH)
    number = (first + np.tile(np.arange(DEPTH) * 7919, topics)) % 8_841_823
    scores = -np.sort(-random.random((topics, DEPTH)), axis=1).ravel() * 30
    table = pl.DataFrame(
        {
            "q": np.repeat(np.arange(topics) + 1, DEPTH),
            "d": number,
            "rank": np.tile(np.arange(DEPTH), topics),
            "s": scores.round(4),
            "label": random.integers(0, 4, topics * DEPTH),
            "judged": random.random(topics * DEPTH) < 0.02,
        }
    )
    files = {"run": str(directory / "run.txt"), "qrels": str(directory / "qrels.txt")}
    run = pl.format("{} Q0 msmarco_passage_{} {} {} bench", "q", "d", "rank", "s")
    qrels = pl.format("{} 0 msmarco_passage_{} {}", "q", "d", "label")
    for name, line, rows in (("run", run, table), ("qrels", qrels, table.filter("judged"))):
        rows.select(line).write_csv(files[name], include_header=False, quote_style="never")
    return files


def measure(body: str, files: dict[str, str]) -> tuple[float, float, dict[str, float]]:
    """Seconds, gigabytes at most, and what was printed."""
    code = REPORT.format(body=body.format(**files))
    # As installed packages are: compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    seconds, peak = done.stderr.split("RESULT")[-1].split()
    lines = (line.split("\t") for line in done.stdout.splitlines())
    values = {name.strip(): float(v) for name, _, v in lines if name.strip() != "runid"}
    return float(seconds), float(peak), values


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trec", description=__doc__)
    parser.add_argument("--lines", type=int, default=7_000_000, help="lines of the run (7,000,000)")
    parser.add_argument("--times", type=int, default=1, help="take the best of so many (default 1)")
    args = parser.parse_args()
    print("| program | seconds | gigabytes |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        files = write(Path(directory), args.lines)
        bodies = {"rankeval trec": OURS, "pytrec_eval": PEER}
        # In turns, so that a machine that slows down does so for both.
        rounds = [
            {name: measure(body, files) for name, body in bodies.items()} for _ in range(args.times)
        ]
    results = {}
    for name in bodies:
        runs = [one[name] for one in rounds]
        results[name] = min(r[0] for r in runs), min(r[1] for r in runs), runs[0][2]
        seconds, peak, _ = results[name]
        print(f"| {name} | {seconds:.1f} | {peak:.2f} |", flush=True)
    (ours, our_peak, mine), (peer, peer_peak, theirs) = results.values()
    # Their rounding of recall points is that of version 9; the last digit printed depends on the order of a sum.
    wrong = [
        name
        for name, value in theirs.items()
        if not name.startswith("iprec") and abs(mine[name] - value) > 1.5e-4
    ]
    if wrong:
        sys.exit(f"not the same: {[(name, mine[name], theirs[name]) for name in wrong]}")
    print(f"\n{peer / ours:.1f} times as fast, {our_peak / peer_peak:.2f} of the memory")


if __name__ == "__main__":
    main()
