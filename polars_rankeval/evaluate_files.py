"""One call from files of any size to a file of measures per query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

import polars as pl

from polars_rankeval._typing import Asked, Source
from polars_rankeval.batches import Task, contiguous_plan
from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import means, prepare, refuse_whole
from polars_rankeval.measures.names import Measure
from polars_rankeval.partitions import partition_by_query, scratch_directory
from polars_rankeval.plan import QUERY_WEIGHT
from polars_rankeval.progress import require_tqdm


def evaluate_files(
    source: Source,
    *measures: str | Measure,
    output: str | Path,
    weight: str | None = None,
    contiguous: bool = False,
    batch_rows: int | None = None,
    partitions: int | None = None,
    temporary: str | Path | None = None,
    progress: bool = False,
    **asked: Unpack[Asked],
) -> pl.DataFrame:
    """Write the measures of every query to a Parquet file, in bounded memory, and return their means.

    Parameters
    ----------
    source
        What `rk.scan` takes, such as the path or glob of Parquet files.
    measures, query, doc, label, score, by, ties, no_relevant, judged_only, weight
        As in `evaluate`.
    output
        The Parquet file. It appears whole or not at all, and replaces one of that name.
    contiguous, batch_rows
        As in `per_query`. A table that is not contiguous is first written in parts by `partition_by_query`, which are removed at the end and after
        errors and Ctrl-C.
    partitions
        Number of parts; as in `partition_by_query`.
    temporary
        Directory for the parts, beside the output unless given.
    progress
        Show the rows done on stderr if it is a terminal, or in a notebook: those written in parts, then those evaluated. Needs tqdm.

    Returns
    -------
    DataFrame
        What `evaluate` returns. The file has what `per_query` returns, in the order of the table or of the parts, and the weight.

    Raises
    ------
    RankEvalError
        As `per_query` and `evaluate`.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     means = rk.evaluate_files(rk.sample(), "AP", by="model", output=f"{scratch}/ap.parquet")
    ...     rows = pl.read_parquet(f"{scratch}/ap.parquet").height
    >>> rows
    24
    >>> means
    shape: (2, 3)
    ┌───────┬─────────┬──────────┐
    │ model ┆ queries ┆ AP       │
    │ ---   ┆ ---     ┆ ---      │
    │ str   ┆ u32     ┆ f64      │
    ╞═══════╪═════════╪══════════╡
    │ bm25  ┆ 12      ┆ 0.496886 │
    │ dense ┆ 12      ┆ 0.587976 │
    └───────┴─────────┴──────────┘
    """
    with _naming(source):
        table, columns, options = prepare(source, measures, weight=weight, **asked)
        refuse_whole(columns)
    if contiguous and partitions is not None:
        msg = "a contiguous table needs no partitions: leave out partitions or contiguous=True"
        raise RankEvalError(msg)
    if not contiguous and batch_rows is not None:
        msg = "batch_rows concerns contiguous tables: add contiguous=True, or use partitions"
        raise RankEvalError(msg)
    if weight in [*columns.keys, *map(str, options.measures)]:
        msg = f"column {weight!r} of the output would be both the weight and something else: rename it"
        raise RankEvalError(msg)
    if progress:
        require_tqdm()
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        _naming(source),
        scratch_directory(f".{path.name}.", path.parent) as beside,
        scratch_directory(".rankeval-", temporary or beside) as scratch,
    ):
        task = Task.of(table, columns, options)
        if contiguous:
            queries = contiguous_plan(table, task, batch_rows, progress=progress)
        else:
            parts = partition_by_query(
                table.select(task.reads),
                scratch / "parts",
                query=columns.query,
                partitions=partitions,
                progress=progress,
            )
            queries = parts.plan(task, progress=progress)
        written = beside / path.name
        renamed = {} if weight is None else {QUERY_WEIGHT: weight}
        queries.rename(renamed).sink_parquet(written)
        back = pl.scan_parquet(written).rename({new: old for old, new in renamed.items()})
        result = means(back, columns, options).collect()
        written.replace(path)
    return result


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    """Say which files an error of Polars is about, which it does not always say itself."""
    try:
        yield
    except (pl.exceptions.ComputeError, OSError, pl.exceptions.PanicException) as error:
        paths = [source] if isinstance(source, str | Path) else source
        known = isinstance(paths, list) and all(isinstance(p, str | Path) for p in paths)
        told = "(while reading " in str(error)
        if not known or told or any(str(p) in str(error) for p in paths):
            raise
        msg = f"{error} (while evaluating {', '.join(map(str, paths))})"
        # Some damaged files make Polars panic, which no `except Exception` catches.
        kind = pl.exceptions.ComputeError if not isinstance(error, Exception) else type(error)
        raise kind(msg) from error
