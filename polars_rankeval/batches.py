"""Contiguous tables in constant memory: the ordinary plan on one batch after the other, cut where a query ends."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TypeAlias, TypeVar, cast

import polars as pl
from polars.io.plugins import register_io_source

from polars_rankeval.checks import example, plural
from polars_rankeval.errors import RankEvalError
from polars_rankeval.io_source import answered, needed
from polars_rankeval.plan import Options, per_query_plan
from polars_rankeval.progress import rows_known, shown
from polars_rankeval.ranking import query_code
from polars_rankeval.table import Columns

#: Large enough that a plan costs little beside its rows, small enough for six tenths of a gigabyte on two cores.
BATCH_ROWS = 2_000_000

#: Batches worked on at a time: one more than can run, since each waits now and then.
WORKERS = min(4, pl.thread_pool_size() + 1)

#: The files of a scan, in an explained plan.
SCANNED = r" SCAN \[(.*?)\]"

T = TypeVar("T")
U = TypeVar("U")
#: Starts to read a table and gives its rows.
BatchSource: TypeAlias = Callable[[], Iterator[pl.DataFrame]]

# Names that no table has.
RANKING, STRETCH, SEEN, END = "rk:ranking", "rk:stretch", "rk:seen", "rk:end"


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


def whole_table(table: pl.LazyFrame, chunk: int) -> Iterator[pl.DataFrame]:
    """The rows of a table in order, a chunk at a time, and an error unless they are all there.

    `collect_batches` ends as if all were well when the engine panics, as it does on some damaged files: so a last row of our own must come.
    """
    last = pl.DataFrame(schema=table.collect_schema()).clear(1).lazy()
    marked = pl.concat(
        [table.with_columns(pl.lit(False).alias(END)), last.with_columns(pl.lit(True).alias(END))]
    )
    rows, ended = 0, False
    try:
        for frame in marked.collect_batches(chunk_size=chunk, maintain_order=True, lazy=True):
            ended = not frame.is_empty() and cast("bool", frame[END][-1])
            read = (frame.head(-1) if ended else frame).drop(END)
            rows += read.height
            yield read
        if not ended:
            msg = f"reading stopped after {plural(rows, 'row')}, before the end of the table: a file is damaged, or Polars failed, and says why on stderr"
            raise pl.exceptions.ComputeError(msg)
    except (pl.exceptions.ComputeError, OSError) as error:
        raise _with_files(error, table) from error


def _with_files(error: Exception, table: pl.LazyFrame) -> Exception:
    """The error with the files that were read, which Polars does not always tell."""
    files = [file for file in re.findall(SCANNED, table.explain(optimized=False)) if file]
    if not files or any(file in str(error) for file in files):
        return error
    return type(error)(f"{error} (while reading {', '.join(files)})")


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


def ahead(function: Callable[[T], U], values: Iterable[T], workers: int = WORKERS) -> Iterator[U]:
    """Map in order, `workers` values at a time: parts of a plan run on one core, and another plan can have the others."""
    running: deque[Future[U]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for value in values:
            running.append(pool.submit(function, value))
            del value  # not held while it waits for the next one
            # One more waits, so that no worker does, unless there is one only.
            if len(running) == workers + (workers > 1):
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        # Without waiting: a plan that wants no more rows may drop this generator in a thread of the pool, which cannot wait for itself.
        pool.shutdown(wait=False, cancel_futures=True)


def whole_queries(frames: Iterable[pl.DataFrame], query: list[str]) -> Iterator[pl.DataFrame]:
    """The same rows in the same order, cut anew so that a query never lies across two frames."""
    held: list[pl.DataFrame] = []  # of one query, the last so far
    for frame in frames:
        if frame.is_empty():
            continue
        start = _last_start(frame, query)
        if held:
            joint = pl.concat([held[-1].tail(1), frame.head(1)]).select(query)
            if joint.n_unique() == 2 and start == 0:
                yield pl.concat(held)
                held = []
        if start > 0:
            yield pl.concat([*held, frame.head(start)])
            held = []
        held.append(frame.slice(start))
    if held:
        yield pl.concat(held)


def _last_start(frame: pl.DataFrame, query: list[str]) -> int:
    """Where the last query of a frame starts, which is looked for from the end."""
    size = 4096
    while True:
        tail = frame.select(query).tail(size)
        start: int = tail.select(pl.arg_where(_changes(query)).last()).item()
        if start > 0 or size >= frame.height:
            return frame.height - tail.height + start
        size *= 16


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


def _changes(columns: list[str]) -> pl.Expr:
    """Whether a row starts a stretch of equal values; the first always does."""
    differs = reduce(or_, (pl.col(c).ne_missing(pl.col(c).shift(1)) for c in columns))
    return (pl.int_range(pl.len()) == 0) | differs


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
        _changes(query).cum_sum().alias(STRETCH)
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
