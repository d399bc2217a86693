"""Tables to measure on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl


@dataclass(frozen=True)
class Case:
    """A table: its shape, its dtypes and how often scores tie."""

    name: str
    queries: int = 10_000
    documents: int = 1_000
    relevant: float = 0.02
    score: npt.DTypeLike = np.float64
    decimals: int | None = None
    string_ids: bool = False

    def make(self) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
        """The table, its rows shuffled, and the dense query codes that the kernel is given."""
        random = np.random.default_rng(0)
        rows = self.queries * self.documents
        codes = np.repeat(np.arange(self.queries, dtype=np.int64), self.documents)
        random.shuffle(codes)
        scores = random.random(rows)
        if self.decimals is not None:
            scores = scores.round(self.decimals)
        labels = (random.random(rows) < self.relevant) * random.integers(1, 4, rows)
        query = pl.Series("query_id", codes * 7 + 100)
        if self.string_ids:
            query = ("query_" + query.cast(pl.String)).alias("query_id")
        table = pl.DataFrame(
            {"query_id": query, "label": labels, "score": scores.astype(self.score)}
        )
        return table, codes


CASES = [
    Case("10,000 x 1,000, Int64 ids, Float64 scores"),
    Case("the same, Float32 scores", score=np.float32),
    Case("the same, String ids", string_ids=True),
    Case("the same, scores of two decimals (most rows tie)", decimals=2),
    Case("1,000,000 x 10", queries=1_000_000, documents=10),
    Case("10,000 x 1,000, half of the rows relevant", relevant=0.5),
]
