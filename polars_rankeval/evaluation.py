"""Measures of every query of a table, and their means."""

from __future__ import annotations

from typing import Any, Unpack, overload

import polars as pl

from polars_rankeval._typing import (
    NO_RELEVANT,
    TIES,
    AtHand,
    Evaluated,
    Frame,
    Names,
    NoRelevant,
    Roles,
    Source,
    Ties,
)
from polars_rankeval.batches import Task, contiguous_plan
from polars_rankeval.checks import (
    Check,
    doc_checks,
    guarded,
    label_checks,
    query_checks,
    refuse,
    refuse_duplicates,
    score_checks,
)
from polars_rankeval.errors import RankEvalError
from polars_rankeval.measures.names import Measure, parse_all, refuse_weights
from polars_rankeval.partitions import Partitions
from polars_rankeval.plan import QUERY_WEIGHT, Options, per_query_plan
from polars_rankeval.progress import require_tqdm
from polars_rankeval.sources import scan
from polars_rankeval.table import Columns, choice, finish, names

#: So small a value stands for 0 in a geometric mean.
GEOMETRIC_FLOOR = 1e-5


@overload
def per_query(table: Frame, *measures: str | Measure, **options: Unpack[Evaluated]) -> Frame: ...
@overload
def per_query(
    table: Source, *measures: str | Measure, **options: Unpack[Evaluated]
) -> pl.LazyFrame: ...
def per_query(
    table: Source,
    *measures: str | Measure,
    query: Names | None = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
    ties: Ties = "block",
    no_relevant: NoRelevant = "zero",
    judged_only: bool = False,
    weight: str | None = None,
    contiguous: bool = False,
    batch_rows: int | None = None,
    progress: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Compute measures of every query.

    Parameters
    ----------
    table
        One row per (query, document): the query columns (not null), `label` (Boolean or number, null for not judged) and `score`
        (number, null for not retrieved). Anything else that `rk.scan` takes is evaluated lazily,
        and `rk.Partitions` part by part.
    measures
        Names such as `"AP"`, `"nDCG@10"`, `"P(rel=2)@5"`, or `rk.Measure`.
    query, doc, label, score
        Columns. Several query columns form one key; with `query=None` the whole table, or each group, is one ranking. Several score columns are evaluated each, and told apart by a column `score`.
        `doc` is read only by `ties="doc"`.
    by
        Columns of groups: a query is ranked in each group on its own.
    ties
        What tied scores mean: `"block"`, `"expected"`, `"best"`, `"worst"`, `"order"` or `"doc"`.
    no_relevant
        Value of a measure that a query without relevant rows leaves undefined: `"zero"`, `"null"`, `"one"` or `"error"`.
    judged_only
        Drop rows that were not judged (null or negative label) before ranking.
    weight
        Column with the weight of each row, as scikit-learn's `sample_weight`: counts become sums of weights. For `ties="block"` and AP without a cutoff, AUC, PRTrapezoid,
        MaxF, PrecisionAtRecall and RecallAtPrecision.
    contiguous
        The rows of each query stand together: evaluate batch by batch, in constant memory (and eight bytes a query). The groups of `by` may be
        mixed inside a query, or stand one after the other.
    batch_rows
        Rows of a batch of a contiguous table, two million unless given. A larger query is a larger batch.
    progress
        Show the rows done of a contiguous table, on stderr if it is a terminal, or in a notebook. Needs tqdm.

    Returns
    -------
    DataFrame or LazyFrame
        As the table: a row per query, sorted by its key (in the order of the table if that is `contiguous`), with the columns of `by`, of `query` and a Float64 column per measure, named by its
        canonical name.

    Raises
    ------
    RankEvalError
        For unknown measures and parameters, and when the plan runs for NaN scores, NaN or infinite labels, null queries, and for a query
        that comes back after another one in a table said to be contiguous.
    polars.exceptions.ColumnNotFoundError
        If a column is missing.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame(
    ...     {"query_id": [1, 1, 1, 2, 2], "label": [1, 0, 1, 0, 1], "score": [0.9, 0.9, 0.4, 0.8, None]}
    ... )
    >>> rk.per_query(table, "AP", "RR", "nDCG@10")
    shape: (2, 4)
    ┌──────────┬──────────┬──────┬──────────┐
    │ query_id ┆ AP       ┆ RR   ┆ nDCG@10  │
    │ ---      ┆ ---      ┆ ---  ┆ ---      │
    │ i64      ┆ f64      ┆ f64  ┆ f64      │
    ╞══════════╪══════════╪══════╪══════════╡
    │ 1        ┆ 0.583333 ┆ 0.75 ┆ 0.806574 │
    │ 2        ┆ 0.0      ┆ 0.0  ┆ 0.0      │
    └──────────┴──────────┴──────┴──────────┘
    """
    lazy, columns, options = prepare(
        table,
        measures,
        query=query,
        doc=doc,
        label=label,
        score=score,
        by=by,
        ties=ties,
        no_relevant=no_relevant,
        judged_only=judged_only,
        row_weight=weight,
    )
    batched = _batched(
        table,
        lazy,
        columns,
        options,
        contiguous=contiguous,
        batch_rows=batch_rows,
        progress=progress,
    )
    if batched is not None:
        return finish(table, batched)
    plan = _per_score(table, lazy, columns, options)
    keys = [*columns.by, *_score_column(columns), *columns.query]
    return finish(table, plan.sort(keys) if keys else plan)


@overload
def evaluate(table: Frame, *measures: str | Measure, **options: Unpack[Evaluated]) -> Frame: ...
@overload
def evaluate(
    table: Source, *measures: str | Measure, **options: Unpack[Evaluated]
) -> pl.LazyFrame: ...
def evaluate(
    table: Source,
    *measures: str | Measure,
    query: Names | None = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
    ties: Ties = "block",
    no_relevant: NoRelevant = "zero",
    judged_only: bool = False,
    weight: str | None = None,
    contiguous: bool = False,
    batch_rows: int | None = None,
    progress: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Compute the mean of measures over the queries, of all or of each group.

    Parameters
    ----------
    table, measures, query, doc, label, score, by, ties, no_relevant, judged_only, contiguous, batch_rows, progress
        As in `per_query`.
    weight
        Column with the weight of the query, the same in all its rows: the mean becomes a weighted one. (Weights of rows are a matter of `per_query`.)

    Returns
    -------
    DataFrame or LazyFrame
        As the table: one row, or one per group sorted by it, with the columns of `by`, `score` if there are several score columns, `queries` (UInt32,
        the number of queries) and a Float64 column per measure. Nulls are skipped by the mean; a mean of nothing is null.

    Raises
    ------
    RankEvalError
        As `per_query`; also for a weight that is null, negative, not finite, or not the same in all rows of a query.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame(
    ...     {"query_id": [1, 1, 1, 2, 2], "label": [1, 0, 1, 0, 1], "score": [0.9, 0.9, 0.4, 0.8, None]}
    ... )
    >>> rk.evaluate(table, "AP", "RR")
    shape: (1, 3)
    ┌─────────┬──────────┬───────┐
    │ queries ┆ AP       ┆ RR    │
    │ ---     ┆ ---      ┆ ---   │
    │ u32     ┆ f64      ┆ f64   │
    ╞═════════╪══════════╪═══════╡
    │ 2       ┆ 0.291667 ┆ 0.375 │
    └─────────┴──────────┴───────┘
    """
    lazy, columns, options = prepare(
        table,
        measures,
        query=query,
        doc=doc,
        label=label,
        score=score,
        by=by,
        ties=ties,
        no_relevant=no_relevant,
        judged_only=judged_only,
        weight=weight,
        means=True,
    )
    queries = _batched(
        table,
        lazy,
        columns,
        options,
        contiguous=contiguous,
        batch_rows=batch_rows,
        progress=progress,
    )
    if queries is None:
        queries = _per_score(table, lazy, columns, options)
    return finish(table, means(queries, columns, options))


def means(queries: pl.LazyFrame, columns: Columns, options: Options) -> pl.LazyFrame:
    """The means of rows of queries (which have QUERY_WEIGHT if weights are asked for), of all or of each group."""
    weighted = options.weight is not None
    columns_of_means = [
        pl.len().cast(pl.UInt32).alias("queries"),
        *(_mean_of(m, weighted=weighted) for m in options.measures),
    ]
    groups = [*columns.by, *_score_column(columns)]
    if groups:
        return queries.group_by(groups).agg(columns_of_means).sort(groups)
    return queries.select(columns_of_means)


@overload
def check(table: Frame, **options: Unpack[Roles]) -> Frame: ...
@overload
def check(table: Source, **options: Unpack[Roles]) -> pl.LazyFrame: ...
def check(
    table: Source,
    *,
    query: Names | None = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
) -> pl.DataFrame | pl.LazyFrame:
    """Validate a table in full, and pass it on unchanged.

    Costs a pass over the values and, if the table has the document column, one over the documents.

    Parameters
    ----------
    table, query, doc, label, score, by
        As in `per_query`. `doc` need not exist; if it does, it may not be null, nor twice in one query.

    Returns
    -------
    DataFrame or LazyFrame
        The table as it came. The plan of a LazyFrame raises when it runs.

    Raises
    ------
    RankEvalError
        For null queries, NaN scores, NaN or infinite labels, null documents, duplicate (query, document) pairs.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.DataFrame({"query_id": [1, 1], "label": [1, 0], "score": [0.9, float("nan")]})
    >>> rk.check(table)
    Traceback (most recent call last):
    ...
    polars_rankeval.errors.RankEvalError: score column 'score' is NaN in 1 row, for example in query 1: NaN has no place in a ranking; use null for rows that were not retrieved
    """
    lazy = scan(table)
    schema = lazy.collect_schema()
    columns = Columns.of(schema, query=query, doc=doc, label=label, score=score, by=by)
    keyed = columns.keyed(lazy)
    checks: list[Check] = _value_checks(schema, columns)
    if doc not in schema:
        return finish(table, guarded(lazy, refuse(keyed, columns.keys, checks, schema)))
    values = refuse(keyed, columns.keys, [*checks, *doc_checks(doc)], schema)
    return finish(table, guarded(lazy, values, refuse_duplicates(keyed, columns, schema)))


def _value_checks(schema: pl.Schema, columns: Columns) -> list[Check]:
    return [
        *query_checks(columns.query),
        *(check for score in columns.scores for check in score_checks(score, schema[score])),
        *label_checks(columns.label, schema[columns.label]),
    ]


def prepare(
    table: Any,
    measures: tuple[str | Measure, ...],
    *,
    query: Names | None = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: Names = "score",
    by: Names | None = None,
    ties: Ties = "block",
    no_relevant: NoRelevant = "zero",
    judged_only: bool = False,
    weight: str | None = None,
    row_weight: str | None = None,
    means: bool = False,
) -> tuple[pl.LazyFrame, Columns, Options]:
    """Check what was asked against the schema of the table."""
    choice("ties", ties, TIES)
    choice("no_relevant", no_relevant, NO_RELEVANT)
    options = Options(parse_all(measures), ties, no_relevant, judged_only, weight, row_weight)
    if row_weight is not None:
        refuse_weights(options.measures, ties)
    weight = weight or row_weight
    if ties in ("block", "expected") and (strict := [str(m) for m in options.measures if m.strict]):
        msg = (
            f"{', '.join(strict)}: there is no value for tied rows as a whole, as ties={ties!r} asks; "
            "use ties='doc' (trec_eval's), 'order', 'best' or 'worst'"
        )
        raise RankEvalError(msg)
    lazy = table.scan() if isinstance(table, Partitions) else scan(table)
    schema = lazy.collect_schema()
    columns = Columns.of(
        schema,
        query=query,
        doc=doc,
        label=label,
        score=score,
        by=by,
        others=[*([doc] if ties == "doc" else []), *([weight] if weight else [])],
        output=[
            *map(str, options.measures),
            *(["score"] if len(names(score)) > 1 else []),
            *(["queries"] if means else []),
        ],
        weight=weight,
    )
    return lazy, columns, options


def refuse_whole(columns: Columns) -> None:
    """Refuse to cut a table that is one ranking."""
    if not columns.query:
        msg = (
            "query=None makes one ranking of the table, which cannot be evaluated in parts: name its query columns, "
            "or use per_query or evaluate without contiguous=True"
        )
        raise RankEvalError(msg)


def _batched(
    table: Any,
    lazy: pl.LazyFrame,
    columns: Columns,
    options: Options,
    *,
    contiguous: bool,
    batch_rows: int | None,
    progress: bool,
) -> pl.LazyFrame | None:
    """The plan of a table that is evaluated batch by batch or part by part; None for another one, which has no use for their options."""
    if batch_rows is not None and batch_rows < 1:
        msg = f"batch_rows={batch_rows} is not a number of rows: use at least 1, or leave it out"
        raise RankEvalError(msg)
    parts = isinstance(table, Partitions)
    if contiguous or parts:
        refuse_whole(columns)
    if not contiguous and (batch_rows is not None or (progress and not parts)):
        what = "progress" if batch_rows is None else "batch_rows"
        msg = (
            f"{what} concerns tables that are evaluated batch by batch: add contiguous=True if the rows of each query stand together, "
            "or leave it out"
        )
        raise RankEvalError(msg)
    if progress:
        require_tqdm()
    if contiguous:
        task = Task.of(lazy, columns, options)
        return contiguous_plan(lazy, task, batch_rows, progress=progress)
    if isinstance(table, Partitions):
        return table.plan(Task.of(lazy, columns, options), progress=progress)
    return None


def _per_score(table: Any, lazy: pl.LazyFrame, columns: Columns, options: Options) -> pl.LazyFrame:
    """The plan for each score column, one below the other."""
    at_hand: AtHand = "whole" if isinstance(table, pl.DataFrame) else None
    plans = [per_query_plan(lazy, columns, s, options, at_hand=at_hand) for s in columns.scores]
    if len(plans) == 1:
        return plans[0]
    return pl.concat(
        plan.with_columns(pl.lit(s).alias("score")).select(
            *columns.by, "score", pl.exclude(*columns.by, "score")
        )
        for plan, s in zip(plans, columns.scores, strict=True)
    )


def _score_column(columns: Columns) -> list[str]:
    return ["score"] if len(columns.scores) > 1 else []


def _mean_of(measure: Measure, *, weighted: bool) -> pl.Expr:
    """Mean over queries; a geometric one takes values below a floor as the floor."""
    value = pl.col(str(measure))
    if not measure.geometric:
        return _mean(value, weighted=weighted)
    return _mean(value.clip(lower_bound=GEOMETRIC_FLOOR).log(), weighted=weighted).exp()


def _mean(value: pl.Expr, *, weighted: bool) -> pl.Expr:
    """Mean over queries that skips nulls; null if there is nothing to mean."""
    if not weighted:
        return value.mean()
    weight = pl.when(value.is_not_null()).then(pl.col(QUERY_WEIGHT))
    total = weight.cast(pl.Float64).sum()
    return pl.when(total > 0).then((value * weight).sum() / total).alias(value.meta.output_name())
