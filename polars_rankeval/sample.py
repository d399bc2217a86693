"""The sample table that ships with the package."""

from __future__ import annotations

from pathlib import Path

import polars as pl

SAMPLE = Path(__file__).parent / "sample.parquet"


def sample() -> pl.LazyFrame:
    """Scan a small made-up table: twelve queries, two models, with ties, unjudged and unretrieved rows.

    Returns
    -------
    LazyFrame
        `model` (String), `query_id` (String), `doc_id` (String), `label` (Int8, null for not judged) and `score` (Float64, null for not
        retrieved).

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> rk.sample().collect_schema().names()
    ['model', 'query_id', 'doc_id', 'label', 'score']
    """
    return pl.scan_parquet(SAMPLE)
