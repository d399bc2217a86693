"""Contiguous tables in constant memory: the ordinary plan on one batch after the other, cut where a query ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import polars as pl
from polars.io.plugins import register_io_source

from polars_rankeval.checks import example, plural
from polars_rankeval.chunks import WORKERS, ahead, changes, whole_queries, whole_table
from polars_rankeval.errors import RankEvalError
from polars_rankeval.io_source import answered, needed
from polars_rankeval.plan import Options, per_query_plan
from polars_rankeval.progress import rows_known, shown
from polars_rankeval.ranking import query_code
from polars_rankeval.table import Columns

#: Large enough that a plan costs little beside its rows, small enough for six tenths of a gigabyte on two cores.
BATCH_ROWS = 2_000_000

#: Starts to read a table and gives its rows.
BatchSource: TypeAlias = Callable[[], Iterator[pl.DataFrame]]

# Names that no table has.
RANKING, STRETCH, SEEN = "rk:ranking", "rk:stretch", "rk:seen"


@dataclass(frozen=True)
class Task:
    """What is asked of every batch."""

    columns: Columns
    options: Options
    #: names and dtypes of the result
    schema: pl.Schema

    @classmethod
    def of(cls, table: pl.LazyFrame, columns: Columns, options: Options) -> Task:
        """Make the ordinary plan once, which says now what it would say of the columns later."""
        one = per_query_plan(table, columns, columns.scores[0], options).collect_schema()
        scores = {"score": pl.String()} if len(columns.scores) > 1 else {}
        by = {name: one[name] for name in columns.by}
        return cls(columns, options, pl.Schema({**by, **scores, **one}))

    @property
    def reads(self) -> list[str]:
        """The columns of the table that are needed."""
        c, o = self.columns, self.options
        extra = [c.doc if o.ties == "doc" else None, o.weight, o.row_weight]
        return list(dict.fromkeys([*c.keys, c.label, *c.scores, *filter(None, extra)]))

    def only(self, wanted: set[str]) -> Task:
        """The task with no more measures than are wanted; one at least, whose plan checks the values."""
        if self.options.no_relevant == "error":
            return self
        kept = [m for m in self.options.measures if str(m) in wanted] or self.options.measures[:1]
        dropped = {str(m) for m in self.options.measures} - {str(m) for m in kept}
        schema = pl.Schema({k: v for k, v in self.schema.items() if k not in dropped})
        return Task(self.columns, replace(self.options, measures=kept), schema)


def contiguous_plan(
    table: pl.LazyFrame, task: Task, batch_rows: int | None = None, *, progress: bool = False
) -> pl.LazyFrame:
    """One row per query in the order of the table, from batches that are read while the plan runs."""
    source = table.select(task.reads)
    chunk = BATCH_ROWS if batch_rows is None else batch_rows

    def batches() -> Iterator[pl.DataFrame]:
        read: Iterable[pl.DataFrame] = whole_table(source, chunk)
        return iter(shown(read, rows_known(source), "evaluated") if progress else read)

    return plan_over(task, batches, contiguous=True)


def plan_over(task: Task, batches: BatchSource, *, contiguous: bool) -> pl.LazyFrame:
    """One row per query of all batches; unless they are `contiguous`, each holds its queries whole already."""

    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        wanted = task.only(needed(task.schema, with_columns, predicate))
        frames = evaluated(batches(), wanted, contiguous=contiguous)
        yield from answered(frames, with_columns, predicate, n_rows)

    return register_io_source(
        read, schema=task.schema, is_pure=True, explain_name="rankeval batches"
    )


def evaluated(
    batches: Iterable[pl.DataFrame], task: Task, *, contiguous: bool = True, workers: int = WORKERS
) -> Iterator[pl.DataFrame]:
    """One row per query, batch by batch in their order; a few batches are worked on at a time."""
    if not contiguous:
        yield from ahead(lambda batch: in_order(_plain(batch, task), task), batches, workers)
        return
    seen = Seen()
    whole = whole_queries(batches, task.columns.query)
    for rows in ahead(lambda batch: _contiguous(batch, task), whole, workers):
        _refuse_again(rows, task.columns, seen)
        yield rows


class Seen:
    """The queries so far, as codes of eight bytes in sorted runs, each less than half as long as the one before."""

    def __init__(self) -> None:
        self._runs: list[pl.Series] = []

    def has(self, codes: pl.Series) -> pl.Series:
        """Which codes were added before."""
        found = pl.repeat(value=False, n=codes.len(), eager=True)
        for run in self._runs:
            place = run.search_sorted(codes).clip(upper_bound=run.len() - 1)
            found |= run.gather(place) == codes
        return found

    def add(self, codes: pl.Series) -> None:
        """Remember codes."""
        run = codes.sort()
        while self._runs and self._runs[-1].len() <= 2 * run.len():
            run = pl.concat([self._runs.pop(), run]).sort()
        self._runs.append(run)


def in_order(rows: pl.DataFrame, task: Task) -> pl.DataFrame:
    """Rows sorted as those of an ordinary plan, with its columns in its order."""
    score = ["score"] if len(task.columns.scores) > 1 else []
    return rows.sort(*task.columns.by, *score, *task.columns.query).select(list(task.schema))


def _contiguous(batch: pl.DataFrame, task: Task) -> pl.DataFrame:
    """Evaluate a batch, whose rankings come out in the order in which they stand."""
    scores = task.columns.scores
    rankings = None
    columns = task.columns
    if _rises(batch, columns.keys):
        batch = batch.with_columns(pl.col(columns.keys).set_sorted())
    else:
        batch, rankings = _numbered(batch, task)
        columns = replace(columns, query=[RANKING], by=[])
    try:
        results = [_values(batch, columns, score, task).sort(columns.keys) for score in scores]
    except RankEvalError:
        _explain(batch, task)
        raise
    if rankings is not None:
        results = [rankings.hstack(values.drop(RANKING)) for values in results]
    if len(scores) > 1:
        place = pl.int_range(pl.len()).alias(RANKING)
        rows = pl.concat(values.with_columns(place) for values in results)
        results = [rows.sort(RANKING, "score")]
    return results[0].select(list(task.schema))


def _rises(batch: pl.DataFrame, keys: list[str]) -> bool:
    """Whether the keys of a batch can be its codes as they are."""
    key = batch[keys[0]]
    integer = query_code(batch.schema, keys).value is not None and key.dtype != pl.UInt64
    return integer and not key.has_nulls() and key.is_sorted()


def _numbered(batch: pl.DataFrame, task: Task) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The batch with the number of the ranking of each row, which its order gives for nothing, and the keys of the rankings.

    Inside a query the rows of its groups may be mixed: then a ranking has several runs of rows.
    """
    keys, query = task.columns.keys, task.columns.query
    if batch.select(pl.any_horizontal(pl.col(query).is_null().any())).item():
        _explain(batch, task)
    # In one chunk, as the numbers are: columns cut in other places are copied again and again.
    batch = batch.rechunk().with_columns(pl.struct(keys).rle_id().alias(RANKING))
    run = batch[RANKING]
    first = run.search_sorted(pl.int_range(cast("int", run[-1]) + 1, eager=True))
    runs = batch.select(pl.col(keys).gather(first)).with_columns(
        changes(query).cum_sum().alias(STRETCH)
    )
    rankings = runs
    if keys != query:
        rankings = runs.unique([STRETCH, *keys], keep="first", maintain_order=True)
    if rankings.height < runs.height:
        numbered = rankings.with_row_index(RANKING)
        of_run = runs.join(
            numbered, on=[STRETCH, *keys], how="left", nulls_equal=True, maintain_order="left"
        )[RANKING]
        batch = batch.with_columns(of_run.gather(run))
    return batch, rankings.select(keys)


def _values(batch: pl.DataFrame, columns: Columns, score: str, task: Task) -> pl.DataFrame:
    """One row per query; with the name of the score, if there are several."""
    plan = per_query_plan(batch.lazy(), columns, score, task.options, at_hand="part")
    if len(columns.scores) > 1:
        plan = plan.with_columns(pl.lit(score).alias("score"))
    # The engine for data in memory: less to set up for each batch.
    return plan.collect(engine="in-memory")


def _refuse_again(rows: pl.DataFrame, columns: Columns, seen: Seen) -> None:
    """Refuse a query that comes back after another one."""
    keys = columns.keys
    if len(columns.scores) > 1:
        rows = rows.filter(pl.col("score") == columns.scores[0])
    codes = rows.select(query_code(rows.schema, keys).expr.alias(SEEN))[SEEN]
    again = rows.filter(seen.has(codes) | (codes.is_first_distinct().not_()))
    if again.height:
        msg = (
            f"the table is not contiguous: {plural(again.select(keys).n_unique(), 'query', 'queries')} of column "
            f"{', '.join(map(repr, keys))} in one batch {'come' if again.height > 1 else 'comes'} back after another query, "
            f"for example query {example(again, keys)}: sort the table by query, use partition_by_query, "
            "or leave out contiguous=True"
        )
        raise RankEvalError(msg)
    seen.add(codes)


def _plain(batch: pl.DataFrame, task: Task) -> pl.DataFrame:
    """Evaluate rows that stand in any order."""
    return pl.concat(
        _values(batch, task.columns, score, task).select(list(task.schema))
        for score in task.columns.scores
    )


def _explain(batch: pl.DataFrame, task: Task) -> None:
    """Raise what is wrong with a batch again, in terms of its own keys."""
    try:
        _plain(batch, task)
    except RankEvalError as error:
        msg = f"{error} (rows are counted in the first batch that has any)"
        raise RankEvalError(msg) from None
