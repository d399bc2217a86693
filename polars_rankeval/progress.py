"""A progress bar over rows, drawn by tqdm if it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any

import polars as pl

from polars_rankeval.errors import RankEvalError


def require_tqdm() -> None:
    """Refuse `progress=True` before any work is done, if nothing can draw it."""
    try:
        import tqdm.auto  # noqa: F401
    except ImportError:
        msg = "progress=True draws with tqdm, which is not installed: pip install 'polars-rankeval[progress]'"
        raise RankEvalError(msg) from None


def rows_known(table: pl.LazyFrame) -> int | None:
    """Number of rows of a table whose files tell it without being read."""
    count = table.select(pl.len())
    plan = [line.strip() for line in count.explain().splitlines()]
    scan, told = plan[1] if len(plan) > 1 else "", ("Parquet SCAN", "DF ")
    if scan.startswith(told) and not any(line.startswith("SELECTION") for line in plan):
        return int(count.collect().item())
    return None


def shown(frames: Iterable[pl.DataFrame], rows: int | None, what: str) -> Iterator[pl.DataFrame]:
    """Pass frames on and show how many rows went by; nothing is drawn in the first second, nor where no one looks."""
    with _bar(rows, what) as bar:
        for frame in frames:
            yield frame
            bar.update(frame.height)


@contextmanager
def shown_plan(table: pl.LazyFrame, rows: int | None, what: str) -> Iterator[pl.LazyFrame]:
    """The table, which shows how many rows went by when a plan runs in the streaming engine."""
    with _bar(rows, what) as bar:
        if bar.disable:
            yield table
            return
        lock = Lock()

        def count(frame: pl.DataFrame) -> pl.DataFrame:
            with lock:  # the engine calls from several threads
                bar.update(frame.height)
            return frame

        yield table.map_batches(count, schema=table.collect_schema(), streamable=True)


def _bar(rows: int | None, what: str) -> AbstractContextManager[Any]:
    from tqdm.auto import tqdm

    # disable=None: off unless stderr is a terminal; notebooks draw with their own widget.
    bar: AbstractContextManager[Any] = tqdm(
        total=rows, unit=" rows", unit_scale=True, desc=what, delay=1.0, disable=None
    )
    return bar
