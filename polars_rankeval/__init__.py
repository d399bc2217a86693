"""Ranking evaluation inside Polars.

Importing the package registers the namespace `rankeval` on expressions, DataFrames and LazyFrames.
"""

from polars_rankeval import namespaces as _namespaces  # noqa: F401  (registers)
from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import check, evaluate, per_query, tie_blocks
from polars_rankeval.expressions import (
    auc,
    average_precision,
    cg,
    dcg,
    err,
    f_score,
    ndcg,
    precision,
    r_precision,
    rbp,
    recall,
    reciprocal_rank,
    success,
)
from polars_rankeval.judge import judge, unmatched
from polars_rankeval.measures.names import Measure
from polars_rankeval.sample import sample
from polars_rankeval.table import scan
from polars_rankeval.trec import scan_qrels, scan_run
from polars_rankeval.trec_writers import write_qrels, write_run

__version__ = "0.1.0"

__all__ = [
    "Measure",
    "RankEvalError",
    "auc",
    "average_precision",
    "cg",
    "check",
    "dcg",
    "err",
    "evaluate",
    "f_score",
    "judge",
    "ndcg",
    "per_query",
    "precision",
    "r_precision",
    "rbp",
    "recall",
    "reciprocal_rank",
    "sample",
    "scan",
    "scan_qrels",
    "scan_run",
    "success",
    "tie_blocks",
    "unmatched",
    "write_qrels",
    "write_run",
]
