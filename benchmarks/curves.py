"""AUC + AP of classification tables against scikit-learn: `python -m benchmarks.curves`."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from sklearn.metrics import average_precision_score, roc_auc_score  # type: ignore[import-untyped]

import polars_rankeval as rk
from benchmarks.timing import agree, seconds

ROWS = 10_000_000


def table(groups: int) -> pl.DataFrame:
    """Rows of so many groups, shuffled, 2 % positive."""
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "model": random.integers(0, groups, ROWS),
            "label": (random.random(ROWS) < 0.02).astype(np.int8),
            "score": random.random(ROWS),
        }
    )


def scikit_learn(frame: pl.DataFrame) -> tuple[float, float]:
    """AUC and AP of one table."""
    label, score = frame["label"].to_numpy(), frame["score"].to_numpy()
    return float(roc_auc_score(label, score)), float(average_precision_score(label, score))


def scikit_learn_by_group(frame: pl.DataFrame) -> tuple[float, float]:
    """The same in a loop over the groups, and the means."""
    return tuple(np.mean([scikit_learn(group) for group in frame.partition_by("model")], axis=0))


def main() -> None:
    """Print the table."""
    print("AUC + AP of 10 million rows; seconds\n")
    print("| table | evaluate | scikit-learn | ratio |\n|---|---|---|---|")
    for name, groups, peer in [
        ("one ranking", 1, scikit_learn),
        ("10,000 groups", 10_000, scikit_learn_by_group),
    ]:
        frame = table(groups)
        by = "model" if groups > 1 else None

        def ours(frame: pl.DataFrame = frame, by: str | None = by) -> tuple[float, ...]:
            return rk.per_query(frame, "AUC", "AP", query=by).select("AUC", "AP").mean().row(0)

        agree(name, ours(), peer(frame), 1e-9)
        fast, slow = seconds(ours, 3), seconds(partial(peer, frame), 1)
        print(f"| {name} | {fast:.2f} | {slow:.2f} | {slow / fast:.1f} |", flush=True)


if __name__ == "__main__":
    main()
