"""Measures as expressions over the label and score of a group: in `group_by().agg`, in `over`, and in `select` for a whole table.

They are exact, and slower than `per_query`, which ranks all queries at once. Every function takes the label and the score as a
column name or an expression, and these keywords:

rel
    The least label that is relevant; by default every label above 0 is.
ties, no_relevant, judged_only
    As in `per_query`.
doc
    The column that breaks ties under `ties="doc"`.
weight
    Of `average_precision` and `auc`: the weight of each row, as scikit-learn's `sample_weight`, under `ties="block"`.

A NaN score, and a label that is NaN or infinite, raise `RankEvalError`; null means not judged or not retrieved. The value is a Float64, one
for each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Unpack, cast

import polars as pl

from polars_rankeval._typing import NO_RELEVANT, TIES, Gain, IntoExpr, NoRelevant, Ties
from polars_rankeval.checks import plural
from polars_rankeval.errors import RankEvalError
from polars_rankeval.group_terms import GroupTerms
from polars_rankeval.measures.names import Measure, refuse_weights
from polars_rankeval.measures.registry import SPECS, parameters
from polars_rankeval.plan import FILL
from polars_rankeval.ranking import normalise
from polars_rankeval.table import choice


class Shared(TypedDict, total=False):
    """Keywords that all expression functions take."""

    ties: Ties
    no_relevant: NoRelevant
    judged_only: bool
    doc: IntoExpr | None


class Weighted(Shared, total=False):
    """Keywords of the measures that take weights of rows."""

    weight: IntoExpr | None


def average_precision(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    rel: float | None = None,
    **shared: Unpack[Weighted],
) -> pl.Expr:
    """Average precision: the mean over the relevant rows of the precision at their positions.

    `AP = 1/R sum over relevant retrieved rows of (relevant rows so far) / position` [1]_. Under `ties="block"` a tie block enters as a
    whole, with the precision at its end, as in scikit-learn; under `ties="expected"` it is the mean over the orders of tied rows [2]_.

    References
    ----------
    .. [1] Buckley and Voorhees, Evaluating evaluation measure stability, SIGIR 2000.
    .. [2] McSherry and Najork, Computing information retrieval performance measures efficiently in the presence of tied scores, ECIR 2008.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"q": [1, 1, 1, 2], "label": [1, 0, 1, 0], "score": [0.9, 0.9, 0.4, 0.5]})
    >>> table.group_by("q", maintain_order=True).agg(ap=rk.average_precision("label", "score"))
    shape: (2, 2)
    ┌─────┬──────────┐
    │ q   ┆ ap       │
    │ --- ┆ ---      │
    │ i64 ┆ f64      │
    ╞═════╪══════════╡
    │ 1   ┆ 0.583333 │
    │ 2   ┆ 0.0      │
    └─────┴──────────┘
    """
    return _expression("AP", label, score, shared, k=k, rel=rel)


def reciprocal_rank(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    rel: float | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Reciprocal rank: 1 / position of the first relevant row, 0 if there is none down to k.

    Under `ties="block"` and `"expected"` it is the mean over the orders of tied rows. Source: Voorhees, The TREC-8 question answering track
    report, 1999.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0], "score": [0.5, 0.5]})
    >>> table.select(rk.reciprocal_rank("label", "score")).item()
    0.75
    """
    return _expression("RR", label, score, shared, k=k, rel=rel)


def precision(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    rel: float | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Precision: relevant rows among the first k, divided by k; without k, of all retrieved rows.

    A list shorter than k is not forgiven. Source: van Rijsbergen, Information Retrieval, 1979.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1], "score": [0.9, 0.8, 0.7]})
    >>> table.select(rk.precision("label", "score", k=2)).item()
    0.5
    """
    return _expression("P", label, score, shared, k=k, rel=rel)


def recall(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    rel: float | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Recall: relevant rows among the first k, divided by R; without k, of all retrieved rows.

    R counts all relevant rows of the query, retrieved or not. Source: van Rijsbergen, Information Retrieval, 1979.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1], "score": [0.9, 0.8, None]})
    >>> table.select(rk.recall("label", "score", k=2)).item()
    0.5
    """
    return _expression("R", label, score, shared, k=k, rel=rel)


def f_score(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    beta: float = 1.0,
    rel: float | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """F of precision and recall: (1 + b^2) P R / (b^2 P + R), of the first k or of all retrieved rows.

    Source: van Rijsbergen, Information Retrieval, 1979 (F = 1 - E).

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1], "score": [0.9, 0.8, 0.7]})
    >>> table.select(rk.f_score("label", "score", k=2)).item()
    0.5
    """
    return _expression("F", label, score, shared, k=k, beta=beta, rel=rel)


def r_precision(
    label: IntoExpr, score: IntoExpr, *, rel: float | None = None, **shared: Unpack[Shared]
) -> pl.Expr:
    """R-precision: relevant rows among the first R, divided by R, the number of relevant rows.

    A list shorter than R is not forgiven. Source: Buckley and Voorhees, SIGIR 2000.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1], "score": [0.9, 0.8, 0.7]})
    >>> table.select(rk.r_precision("label", "score")).item()
    0.5
    """
    return _expression("Rprec", label, score, shared, rel=rel)


def success(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    rel: float | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Success, or hit rate: 1 if one of the first k rows is relevant, else 0.

    Under `ties="block"` and `"expected"` it is the share of the orders of tied rows in which one is.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0], "score": [0.5, 0.5]})
    >>> table.select(rk.success("label", "score", k=1)).item()
    0.5
    """
    return _expression("Success", label, score, shared, k=k, rel=rel)


def cg(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    gains: Mapping[Any, float] | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Cumulated gain: the sum of the gains of the first k rows.

    The gain is the label (`"linear"`) or 2^label - 1 (`"exp2"`), 0 for null and negative labels; or what `gains` gives a label, which may be negative. Source: Järvelin and Kekäläinen, TOIS 2002.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [3, 2, 0], "score": [0.9, 0.8, 0.7]})
    >>> table.select(rk.cg("label", "score", k=2)).item()
    5.0
    """
    return _expression("CG", label, score, shared, k=k, gain=gain, gains=gains)


def dcg(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    gains: Mapping[Any, float] | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Discounted cumulated gain: the sum over the first k rows of gain / log2(position + 1).

    The gain is the label (`"linear"`) or 2^label - 1 (`"exp2"`), 0 for null and negative labels; or what `gains` gives a label, which may be negative. Source: Järvelin and Kekäläinen, TOIS 2002,
    with the discount of Burges et al., ICML 2005.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [0, 0, 2], "score": [0.9, 0.8, 0.7]})
    >>> table.select(rk.dcg("label", "score")).item()
    1.0
    """
    return _expression("DCG", label, score, shared, k=k, gain=gain, gains=gains)


def ndcg(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    gains: Mapping[Any, float] | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Normalised DCG: DCG@k divided by the DCG@k of all rows of the query, retrieved or not, in descending order of label.

    Under `ties="block"` and `"expected"` it is the mean over the orders of tied rows, as scikit-learn's `ndcg_score`. Source: Järvelin and
    Kekäläinen, TOIS 2002.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"q": [1, 1, 2], "label": [0, 1, 1], "score": [0.9, 0.8, 0.7]})
    >>> table.with_columns(ndcg=rk.ndcg("label", "score", k=10).over("q"))
    shape: (3, 4)
    ┌─────┬───────┬───────┬─────────┐
    │ q   ┆ label ┆ score ┆ ndcg    │
    │ --- ┆ ---   ┆ ---   ┆ ---     │
    │ i64 ┆ i64   ┆ f64   ┆ f64     │
    ╞═════╪═══════╪═══════╪═════════╡
    │ 1   ┆ 0     ┆ 0.9   ┆ 0.63093 │
    │ 1   ┆ 1     ┆ 0.8   ┆ 0.63093 │
    │ 2   ┆ 1     ┆ 0.7   ┆ 1.0     │
    └─────┴───────┴───────┴─────────┘
    """
    return _expression("nDCG", label, score, shared, k=k, gain=gain, gains=gains)


def rbp(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    p: float = 0.8,
    rel: float | None = None,
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Rank-biased precision: (1 - p) times the sum over relevant rows of p^(position - 1).

    `p` is the persistence of the user. Source: Moffat and Zobel, TOIS 2008.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1], "score": [0.9, 0.8, 0.7]})
    >>> table.select(rk.rbp("label", "score", p=0.5)).item()
    0.625
    """
    return _expression("RBP", label, score, shared, k=k, p=p, rel=rel)


def err(
    label: IntoExpr,
    score: IntoExpr,
    *,
    k: int | None = None,
    max_label: float = 4,
    discount: Literal["reciprocal", "log2"] = "reciprocal",
    **shared: Unpack[Shared],
) -> pl.Expr:
    """Expected reciprocal rank: the expected 1 / position where a user stops whom a row satisfies with probability (2^label - 1) / 2^max_label.

    Needs `ties="best"`, `"worst"`, `"order"` or `"doc"`: tied graded rows have no form inside a group; `per_query` is exact for them. Source:
    Chapelle et al., CIKM 2009.

    Raises
    ------
    RankEvalError
        Under `ties="block"` and `"expected"`, and for a label above `max_label`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [0, 1], "score": [0.9, 0.8]})
    >>> table.select(rk.err("label", "score", max_label=1, ties="order")).item()
    0.25
    """
    return _expression("ERR", label, score, shared, k=k, max_label=max_label, discount=discount)


def auc(
    label: IntoExpr, score: IntoExpr, *, rel: float | None = None, **shared: Unpack[Weighted]
) -> pl.Expr:
    """Area under the ROC curve: the share of (relevant, other) pairs of retrieved rows in the right order, ties counting half.

    Null if there are no pairs. Source: Hanley and McNeil, Radiology 1982.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"label": [1, 0, 1, 0], "score": [0.9, 0.9, 0.4, 0.1]})
    >>> table.select(rk.auc("label", "score")).item()
    0.625
    """
    return _expression("AUC", label, score, shared, rel=rel)


def _expression(
    name: str,
    label: IntoExpr,
    score: IntoExpr,
    shared: Shared,
    *,
    k: int | None = None,
    **params: Any,
) -> pl.Expr:
    ties, no_relevant = shared.get("ties", "block"), shared.get("no_relevant", "zero")
    allowed = Weighted if SPECS[name].weights else Shared
    unknown = [key for key in shared if key not in allowed.__annotations__]
    if unknown:
        msg = f"{name} has no keyword {unknown[0]!r}: it has {', '.join(allowed.__annotations__)}"
        raise TypeError(msg)
    choice("ties", ties, TIES)
    choice("no_relevant", no_relevant, NO_RELEVANT)
    measure = Measure(name, k, **{p: v for p, v in params.items() if v is not None})
    doc, weight = shared.get("doc"), cast("Weighted", shared).get("weight")
    if weight is not None:
        refuse_weights([measure], ties)
    labels, scores = _labels(_into(label), measure), _scores(_into(score), measure)
    if shared.get("judged_only"):
        scores = pl.when(labels >= 0).then(scores)
    terms = GroupTerms(
        labels,
        scores,
        measure.level,
        ties,
        None if doc is None else _into(doc),
        None if weight is None else _into(weight),
    )
    value, undefined = measure.value(terms), measure.undefined(terms)
    if undefined is not None:
        value = (
            pl.when(undefined).then(pl.lit(FILL[no_relevant], dtype=pl.Float64)).otherwise(value)
        )
        if no_relevant == "error":
            value = value.map_batches(
                lambda s: _refuse_null(s, measure), return_dtype=pl.Float64, is_elementwise=True
            )
    name_of = (
        label if isinstance(label, str) else label.meta.output_name(raise_if_undetermined=False)
    )
    return value.cast(pl.Float64).alias(name_of or str(measure))


def _into(value: IntoExpr) -> pl.Expr:
    return pl.col(value) if isinstance(value, str) else value


def _labels(value: pl.Expr, measure: Measure) -> pl.Expr:
    """Labels as Float64; raises on those that have no place in a ranking.

    An expression does not know the dtypes of its columns, hence a function: it sees whole columns, not groups.
    """
    max_label = {**parameters(measure.name), **dict(measure.params)}.get("max_label")

    def check(s: pl.Series) -> pl.Series:
        labels = _number(s, f"a label of {measure}", also=(pl.Boolean, pl.Null)).cast(pl.Float64)
        _refuse(labels.is_finite().not_(), f"a label of {measure}", s.name, "NaN or infinite")
        if max_label is not None:
            what = f"above max_label={max_label}"
            _refuse(labels > max_label, f"a label of {measure}", s.name, what)
        return labels

    return value.map_batches(check, return_dtype=pl.Float64, is_elementwise=True)


def _scores(value: pl.Expr, measure: Measure) -> pl.Expr:
    """Scores with one zero; raises on those that have no place in a ranking."""

    def check(s: pl.Series) -> pl.Series:
        _number(s, f"a score of {measure}", also=(pl.Null,))
        if not s.dtype.is_float():
            return s
        _refuse(s.is_nan(), f"a score of {measure}", s.name, "NaN")
        return s.to_frame().select(normalise(pl.col(s.name), s.dtype)).to_series()

    return value.map_batches(check, return_dtype=pl.self_dtype(), is_elementwise=True)


def _number(s: pl.Series, what: str, also: tuple[Any, ...]) -> pl.Series:
    if not s.dtype.is_numeric() and s.dtype not in also:
        msg = f"{what}: column {s.name!r} has dtype {s.dtype}, but it must be a number"
        raise RankEvalError(msg)
    return s


def _refuse(bad: pl.Series, what: str, column: str, kind: str) -> None:
    if count := int(bad.sum()):
        msg = f"{what}: column {column!r} is {kind} in {plural(count, 'row')}"
        raise RankEvalError(msg + ("" if "max" in kind else "; use null for what is not there"))


def _refuse_null(s: pl.Series, measure: Measure) -> pl.Series:
    if s.null_count():
        msg = (
            f"{measure} is undefined for {plural(s.null_count(), 'query', 'queries')} without relevant rows: "
            "use no_relevant='zero', 'null' or 'one', or filter them out"
        )
        raise RankEvalError(msg)
    return s
