"""The namespace `rankeval` of expressions and frames: the functions of the package with self as first argument.

Type checkers do not see registered namespaces: `lf.pipe(rk.evaluate, "AP")` is the typed way to the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import polars as pl

from polars_rankeval import curves, evaluation, expressions
from polars_rankeval.confusion import confusion as _confusion


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a method of a namespace object: its first argument is what the namespace hangs on."""

    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self._self, *args, **kwargs)

    return call


@pl.api.register_expr_namespace("rankeval")
class ExprNamespace:
    """Measures of the label `self`, given the score; see the functions of the same names."""

    def __init__(self, label: pl.Expr) -> None:
        self._self = label

    average_precision = _method(expressions.average_precision)
    reciprocal_rank = _method(expressions.reciprocal_rank)
    precision = _method(expressions.precision)
    recall = _method(expressions.recall)
    f_score = _method(expressions.f_score)
    r_precision = _method(expressions.r_precision)
    success = _method(expressions.success)
    cg = _method(expressions.cg)
    dcg = _method(expressions.dcg)
    ndcg = _method(expressions.ndcg)
    rbp = _method(expressions.rbp)
    err = _method(expressions.err)
    auc = _method(expressions.auc)


class _FrameNamespace:
    """Evaluation of the table `self`; see the functions of the same names."""

    def __init__(self, frame: Any) -> None:
        # The namespace is kept by the frame: a clone, which shares the data, makes no cycle.
        self._self = frame.clone()

    per_query = _method(evaluation.per_query)
    evaluate = _method(evaluation.evaluate)
    tie_blocks = _method(curves.tie_blocks)
    pr_curve = _method(curves.pr_curve)
    roc_curve = _method(curves.roc_curve)
    confusion = _method(_confusion)
    check = _method(evaluation.check)


@pl.api.register_dataframe_namespace("rankeval")
class DataFrameNamespace(_FrameNamespace):
    """`df.rankeval`: results are DataFrames."""


@pl.api.register_lazyframe_namespace("rankeval")
class LazyFrameNamespace(_FrameNamespace):
    """`lf.rankeval`: results are LazyFrames, and nothing is collected."""
