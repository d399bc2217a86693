"""Join a run with relevance judgements: the one table that everything else takes."""

from __future__ import annotations

from typing import Literal, get_args

import polars as pl

from polars_rankeval._typing import Names, Source
from polars_rankeval.checks import doc_checks, guarded, query_checks, refuse, refuse_duplicates
from polars_rankeval.errors import RankEvalError
from polars_rankeval.sources import scan
from polars_rankeval.table import Columns, choice, names

Missing = Literal["keep", "drop"]


def judge(
    run: Source,
    qrels: Source,
    *,
    query: Names = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: str = "score",
    by: Names | None = None,
    missing: Missing = "keep",
) -> pl.LazyFrame:
    """Join runs and judgements into one lazy table: a full join on query and document.

    A retrieved document without a judgement has a null label, a judged document that was not retrieved a null score. Queries of the
    run without judgements cannot be evaluated and are left out; `rk.unmatched` lists and counts them.

    Judged queries that the run does not answer are kept unless told otherwise, and score 0: a mean over the queries that a system chose to
    answer could be raised by answering fewer, and means of two runs would be means over different queries. trec_eval, pytrec_eval and
    ir_measures decide the other way: see `missing`.

    Parameters
    ----------
    run
        Retrieved documents: the columns of `query`, `doc`, `score`, and of `by`.
    qrels
        Judged documents: the columns of `query`, `doc` and `label`.
    query, doc, label, score
        Columns, as in `per_query`.
    by
        Columns of the run that tell several runs apart: each is joined with all judgements.
    missing
        What becomes of judged queries that the run does not answer. `"keep"` (the default here) keeps them, so that they score 0 and count in
        means: trec_eval with `-c`. `"drop"` leaves them out, so that means are over the queries that are in both: what trec_eval does by
        default, and pytrec_eval always.

    Returns
    -------
    LazyFrame
        The columns of `by`, `query`, `doc`, `label`, `score`. The plan raises when it runs.

    Raises
    ------
    RankEvalError
        If ids have another dtype in the run than in the judgements; when the plan runs, for a null query or document, or one that stands
        twice in a query of either side.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> run = {"query_id": [1, 1], "doc_id": ["a", "b"], "score": [0.9, 0.4]}
    >>> qrels = {"query_id": [1, 1, 2], "doc_id": ["b", "c", "a"], "label": [1, 2, 1]}
    >>> rk.judge(run, qrels).sort("query_id", "doc_id").collect()
    shape: (4, 4)
    ┌──────────┬────────┬───────┬───────┐
    │ query_id ┆ doc_id ┆ label ┆ score │
    │ ---      ┆ ---    ┆ ---   ┆ ---   │
    │ i64      ┆ str    ┆ i64   ┆ f64   │
    ╞══════════╪════════╪═══════╪═══════╡
    │ 1        ┆ a      ┆ null  ┆ 0.9   │
    │ 1        ┆ b      ┆ 1     ┆ 0.4   │
    │ 1        ┆ c      ┆ 2     ┆ null  │
    │ 2        ┆ a      ┆ 1     ┆ null  │
    └──────────┴────────┴───────┴───────┘
    """
    choice("missing", missing, get_args(Missing))
    retrieved, judged = scan(run), scan(qrels)
    queries, groups = names(query), names(by)
    _refuse_other_dtypes(retrieved, judged, [*queries, doc])
    retrieved = _side(retrieved, query=query, doc=doc, value=score, by=by, part="score")
    judged = _side(judged, query=query, doc=doc, value=label, by=None, part="label")

    known = judged.select(queries).unique()
    # All runs: one that answers no judged query has not gone away.
    runs = retrieved.select(groups).unique()
    retrieved = retrieved.join(known, on=queries, how="semi")
    if groups:
        judged = runs.join(judged, how="cross")
    keys = [*groups, *queries]
    if missing == "drop":
        judged = judged.join(retrieved.select(keys).unique(), on=keys, how="semi")
    return retrieved.join(judged, on=[*keys, doc], how="full", coalesce=True).select(
        *keys, doc, label, score
    )


def unmatched(
    run: Source, qrels: Source, *, query: Names = "query_id", by: Names | None = None
) -> pl.LazyFrame:
    """List the queries that only the run or only the judgements have.

    Parameters
    ----------
    run, qrels, query, by
        As in `judge`.

    Returns
    -------
    LazyFrame
        The columns of `by` and `query`, and `only_in`: `"run"` (left out by `judge`) or `"qrels"` (missing in the run), sorted by all.

    Raises
    ------
    RankEvalError
        If the query columns have another dtype in the run than in the judgements.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> alone = rk.unmatched({"query_id": [1, 3]}, {"query_id": [1, 2]})
    >>> alone.collect()
    shape: (2, 2)
    ┌──────────┬─────────┐
    │ query_id ┆ only_in │
    │ ---      ┆ ---     │
    │ i64      ┆ str     │
    ╞══════════╪═════════╡
    │ 2        ┆ qrels   │
    │ 3        ┆ run     │
    └──────────┴─────────┘
    >>> alone.group_by("only_in").len().sort("only_in").collect().rows()
    [('qrels', 1), ('run', 1)]
    """
    retrieved, judged, queries, groups = scan(run), scan(qrels), names(query), names(by)
    _refuse_other_dtypes(retrieved, judged, queries)
    keys = [*groups, *queries]
    retrieved, judged = retrieved.select(keys).unique(), judged.select(queries).unique()
    runs = retrieved.select(groups).unique()
    asked = runs.join(judged, how="cross") if groups else judged
    return pl.concat(
        [
            retrieved.join(judged, on=queries, how="anti").with_columns(only_in=pl.lit("run")),
            asked.join(retrieved, on=keys, how="anti")
            .select(keys)
            .with_columns(only_in=pl.lit("qrels")),
        ]
    ).sort(*keys, "only_in")


def _side(
    frame: pl.LazyFrame, *, query: Names, doc: str, value: str, by: Names | None, part: str
) -> pl.LazyFrame:
    """One side of the join: its columns, which name every row and no row twice."""
    columns = Columns.of(
        frame.collect_schema(), query=query, doc=doc, label=value, score=value, by=by, others=[doc]
    )
    frame = frame.select(*columns.keys, doc, value)
    schema = frame.collect_schema()
    if part == "score" and schema[value] == pl.Boolean:
        msg = f"score column {value!r} has dtype Boolean, but a score is a number"
        raise RankEvalError(msg)
    nulls = refuse(frame, columns.keys, [*query_checks(columns.keys), *doc_checks(doc)], schema)
    return guarded(frame, nulls, refuse_duplicates(frame, columns, schema))


def _refuse_other_dtypes(run: pl.LazyFrame, qrels: pl.LazyFrame, columns: list[str]) -> None:
    """Ids of two dtypes are never equal: an error, not an empty join."""
    left, right = run.collect_schema(), qrels.collect_schema()
    for name in columns:
        if name in left and name in right and left[name] != right[name]:
            target = "pl.String" if pl.String in (left[name], right[name]) else f"pl.{left[name]}"
            side = "run" if right[name] == pl.String else "judgements"
            msg = (
                f"column {name!r} is {left[name]} in the run and {right[name]} in the judgements, so no id would match: cast "
                f"it in the {side}, for example with pl.col({name!r}).cast({target})"
            )
            raise RankEvalError(msg)
