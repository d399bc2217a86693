"""Tables in chunks: read to the end, cut between queries, and worked on a few at a time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from operator import or_
from typing import TypeVar, cast

import polars as pl

from polars_rankeval.checks import plural

#: Chunks worked on at a time: one more than can run, since each waits now and then.
WORKERS = min(4, pl.thread_pool_size() + 1)

#: The files of a scan, in an explained plan.
SCANNED = r" SCAN \[(.*?)\]"
#: A name that no table has.
END = "rk:end"

T = TypeVar("T")
U = TypeVar("U")


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
        start: int = tail.select(pl.arg_where(changes(query)).last()).item()
        if start > 0 or size >= frame.height:
            return frame.height - tail.height + start
        size *= 16


def changes(columns: list[str]) -> pl.Expr:
    """Whether a row starts a stretch of equal values; the first always does."""
    differs = reduce(or_, (pl.col(c).ne_missing(pl.col(c).shift(1)) for c in columns))
    return (pl.int_range(pl.len()) == 0) | differs


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
