"""Ranking evaluation inside Polars; importing it registers the namespace `rankeval`."""

from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import check, evaluate, per_query, tie_blocks
from polars_rankeval.measures.names import Measure
from polars_rankeval.table import scan

__all__ = ["Measure", "RankEvalError", "check", "evaluate", "per_query", "scan", "tie_blocks"]
