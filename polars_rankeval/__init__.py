"""Ranking evaluation inside Polars.

Importing the package registers the namespace `rankeval` on expressions, DataFrames and LazyFrames.
"""

from polars_rankeval import namespaces as _namespaces  # noqa: F401  (registers)
from polars_rankeval.confusion import confusion
from polars_rankeval.curves import pr_curve, roc_curve, tie_blocks
from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluate_files import evaluate_files
from polars_rankeval.evaluation import check, evaluate, per_query
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
from polars_rankeval.groups import from_groups
from polars_rankeval.judge import judge, unmatched
from polars_rankeval.measures.names import Measure
from polars_rankeval.partitions import Partitions, partition_by_query
from polars_rankeval.sample import sample
from polars_rankeval.sources import scan
from polars_rankeval.svmlight import scan_svmlight
from polars_rankeval.svmlight_writer import write_svmlight
from polars_rankeval.trec import scan_qrels, scan_run
from polars_rankeval.trec_lines import skipped_lines
from polars_rankeval.trec_writers import write_qrels, write_run

__version__ = "0.1.0"

__all__ = [
    "Measure",
    "Partitions",
    "RankEvalError",
    "auc",
    "average_precision",
    "cg",
    "check",
    "confusion",
    "dcg",
    "err",
    "evaluate",
    "evaluate_files",
    "f_score",
    "from_groups",
    "judge",
    "ndcg",
    "partition_by_query",
    "per_query",
    "pr_curve",
    "precision",
    "r_precision",
    "rbp",
    "recall",
    "reciprocal_rank",
    "roc_curve",
    "sample",
    "scan",
    "scan_qrels",
    "scan_run",
    "scan_svmlight",
    "skipped_lines",
    "success",
    "tie_blocks",
    "unmatched",
    "write_qrels",
    "write_run",
    "write_svmlight",
]
