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
from polars_rankeval.measures.names import Measure
from polars_rankeval.sample import sample
from polars_rankeval.sources import scan
from polars_rankeval.svmlight import from_groups, scan_svmlight, write_svmlight

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
    "from_groups",
    "ndcg",
    "per_query",
    "precision",
    "r_precision",
    "rbp",
    "recall",
    "reciprocal_rank",
    "sample",
    "scan",
    "scan_svmlight",
    "success",
    "tie_blocks",
    "write_svmlight",
]
