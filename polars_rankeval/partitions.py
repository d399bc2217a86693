"""Tables too large for memory whose queries are scattered: parts on disk that hold their queries whole, evaluated one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import sleep

import polars as pl

from polars_rankeval._typing import Names, Source
from polars_rankeval.batches import Task, plan_over
from polars_rankeval.errors import RankEvalError
from polars_rankeval.progress import require_tqdm, rows_known, shown, shown_plan
from polars_rankeval.sources import scan
from polars_rankeval.table import names

#: Written last: a directory without it is no partitioned table.
MANIFEST = "partitions.json"
#: Rows of a part: a few parts fit memory easily.
PART_ROWS = 2_000_000
PART = "rk:part"


@dataclass(frozen=True)
class Partitions:
    """A table in parts, as `partition_by_query` leaves it: pass it to `per_query` or `evaluate`.

    Parameters
    ----------
    directory
        Where the parts are.
    """

    directory: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", Path(self.directory))
        if not (self.directory / MANIFEST).is_file():
            msg = f"{str(self.directory)!r} holds no table in parts: make one with rk.partition_by_query"
            raise RankEvalError(msg)

    @property
    def query(self) -> list[str]:
        """The columns whose values never lie in two parts."""
        columns: list[str] = json.loads((self.directory / MANIFEST).read_text())["query"]
        return columns

    @property
    def parts(self) -> list[Path]:
        """The files."""
        return sorted(self.directory.glob("*.parquet"))

    def scan(self) -> pl.LazyFrame:
        """The table as it was, but for the order of its queries."""
        return pl.scan_parquet(self.parts, hive_partitioning=False)

    def plan(self, task: Task, *, progress: bool = False) -> pl.LazyFrame:
        """One row per query, sorted inside each part, with a few parts in memory at a time."""
        if not set(self.query) <= set(task.columns.keys):
            msg = (
                f"the table was partitioned by {self.query} and a query is told by {task.columns.keys}: "
                "partition it by columns that are among those of the query"
            )
            raise RankEvalError(msg)

        def batches() -> Iterator[pl.DataFrame]:
            read: Iterable[pl.DataFrame] = (
                pl.read_parquet(part, columns=task.reads, hive_partitioning=False)
                for part in self.parts
            )
            return iter(shown(read, rows_known(self.scan()), "evaluated") if progress else read)

        return plan_over(task, batches, contiguous=False)


def partition_by_query(
    source: Source,
    directory: str | Path,
    *,
    query: Names = "query_id",
    partitions: int | None = None,
    progress: bool = False,
) -> Partitions:
    """Write a table in parts that hold their queries whole, in one streaming pass.

    Parameters
    ----------
    source
        What `rk.scan` takes, of any size and in any order. Select the columns that are needed first, to write no others.
    directory
        A local directory, made by this call. It appears when all parts are written, or not at all.
    query
        Query columns: rows go to the part that the hash of their values says. Groups need not be named.
    partitions
        Number of parts, a few of which must fit in memory with room to spare: a part for two million rows unless given, for which rows are
        counted first (free for Parquet, a pass for CSV).
    progress
        Show the rows written on stderr if it is a terminal, or in a notebook. Needs tqdm.

    Returns
    -------
    Partitions
        The table in parts, for `per_query` and `evaluate`. Another process finds it as `rk.Partitions(directory)`.

    Raises
    ------
    RankEvalError
        If the directory is there and not empty, or `partitions` is below 1.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import polars_rankeval as rk
    >>> table = pl.LazyFrame({"query_id": [1, 2, 1], "label": [1, 1, 0], "score": [0.3, 0.2, 0.1]})
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     parts = rk.partition_by_query(table, f"{scratch}/parts", partitions=2)
    ...     rk.evaluate(parts, "AP").collect()
    shape: (1, 2)
    ┌─────────┬─────┐
    │ queries ┆ AP  │
    │ ---     ┆ --- │
    │ u32     ┆ f64 │
    ╞═════════╪═════╡
    │ 2       ┆ 1.0 │
    └─────────┴─────┘
    """
    table, path, columns = scan(source), Path(directory), names(query)
    if partitions is not None and partitions < 1:
        msg = f"partitions={partitions} is not a number of parts: use at least 1, or leave it out"
        raise RankEvalError(msg)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        msg = f"{str(path)!r} is there and not empty: name a directory that this call can make"
        raise RankEvalError(msg)
    schema = table.collect_schema()
    missing = [name for name in columns if name not in schema]
    if missing:
        msg = f"query column {missing[0]!r} not found; the table has {', '.join(map(repr, schema))}"
        raise pl.exceptions.ColumnNotFoundError(msg)
    if progress:
        require_tqdm()
    rows = rows_known(table) if progress and partitions is not None else None
    if partitions is None:
        rows = int(table.select(pl.len()).collect().item())
        partitions = max(1, ceil(rows / PART_ROWS))
    path.parent.mkdir(parents=True, exist_ok=True)
    watched = shown_plan(table, rows, "written in parts") if progress else nullcontext(table)
    with (
        scratch_directory(f".{path.name}.", path.parent) as scratch,
        watched as read,
    ):
        beside = scratch / "parts"
        beside.mkdir()
        part = (pl.struct(columns).hash() % partitions).cast(pl.UInt32).alias(PART)
        read.sink_parquet(
            pl.PartitionBy(
                beside,
                key=part,
                include_key=False,
                approximate_bytes_per_file=None,
                file_path_provider=lambda args: f"{args.partition_keys.item():05d}.parquet",
            ),
            # Read once and soon: what costs is the writing.
            compression="lz4",
            statistics=False,
        )
        if not any(beside.glob("*.parquet")):
            pl.DataFrame(schema=schema).write_parquet(beside / "00000.parquet")
        (beside / MANIFEST).write_text(json.dumps({"query": columns, "partitions": partitions}))
        beside.replace(path)
    return Partitions(path)


@contextmanager
def scratch_directory(prefix: str, parent: str | Path) -> Iterator[Path]:
    """A directory that is gone afterwards, also after an error: tasks of a sink outlive it, and make their files and directories again."""
    path = Path(mkdtemp(prefix=prefix, dir=parent))
    try:
        yield path
    except BaseException:
        gone = 0
        for _ in range(100):
            rmtree(path, ignore_errors=True)
            gone = 0 if path.exists() else gone + 1
            if gone == 4:
                break
            sleep(0.05)
        raise
    rmtree(path)
