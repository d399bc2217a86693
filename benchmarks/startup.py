"""How long short commands take, beside `import polars`: `python -m benchmarks.startup [--times N]`.

Wall clock of whole processes, run in turn so that a busy moment of the machine falls on all, the best of each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

RANKEVAL = "from polars_rankeval.cli import script; script()"
#: What their console script does.
PEER = "from ir_measures.__main__ import main_cli; main_cli()"


def write(directory: Path) -> dict[str, str]:
    """A thousand rows: as a table, and as run and judgements."""
    random = np.random.default_rng(0)
    rows = np.arange(1000)
    table = pl.DataFrame(
        {
            "query_id": rows // 20,
            "doc_id": rows,
            "label": (random.random(1000) < 0.2).astype(int),
            "score": random.random(1000),
        }
    )
    files = {name: str(directory / name) for name in ("scored.parquet", "a.run", "a.qrels")}
    table.write_parquet(files["scored.parquet"])
    run = pl.format("{} Q0 d{} 1 {} bench", "query_id", "doc_id", "score")
    qrels = pl.format("{} 0 d{} {}", "query_id", "doc_id", "label")
    for name, line in (("a.run", run), ("a.qrels", qrels)):
        table.select(line).write_csv(files[name], include_header=False, quote_style="never")
    return files


def commands(files: dict[str, str]) -> dict[str, list[str]]:
    """What is run, by what would be typed."""
    trec = [files["a.qrels"], files["a.run"]]
    known = {
        "python -c 'import polars'": ["import polars"],
        "rankeval --help": [RANKEVAL, "--help"],
        "rankeval evaluate scored.parquet": [RANKEVAL, "evaluate", files["scored.parquet"]],
        "rankeval trec QRELS RUN -m ndcg_cut.10": [RANKEVAL, "trec", *trec, "-m", "ndcg_cut.10"],
    }
    if find_spec("ir_measures"):
        known["ir_measures QRELS RUN nDCG@10"] = [PEER, *trec, "nDCG@10"]
    return known


def seconds(arguments: list[str]) -> float:
    """How long a process takes."""
    # As installed packages are: compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument(
        "--times", type=int, default=15, help="take the best of so many (default 15)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        known = commands(write(Path(directory)))
        # The first round compiles.
        rounds = [[seconds(command) for command in known.values()] for _ in range(args.times + 1)]
    best = dict(zip(known, map(min, zip(*rounds[1:], strict=True)), strict=True))
    bound = 1.5 * next(iter(best.values())) + 0.15
    print("| command | milliseconds |\n|---|---|")
    for name, value in best.items():
        print(f"| `{name}` | {value * 1000:.0f} |")
    print(f"\nbound for `--help` and `evaluate`: 1.5 x `import polars` + 150 = {bound * 1000:.0f}")


if __name__ == "__main__":
    main()
