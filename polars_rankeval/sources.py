"""`scan`: one lazy table of whatever holds the rows: frames, Arrow objects, files, lakehouse tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from polars_rankeval._typing import Source
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import scan_path, scan_paths
from polars_rankeval.io_source import answered


def scan(source: Source) -> pl.LazyFrame:
    """Make a lazy table of a frame, an Arrow object, a lakehouse table or files.

    Every function of the package that takes a table takes these too.

    Parameters
    ----------
    source
        One of

        * LazyFrame, DataFrame, a mapping of columns;
        * the path, glob or list of paths of Parquet, IPC, CSV, TSV or NDJSON files, told by their suffix, the text ones also compressed (`.csv.gz`,
          `.ndjson.zst`), at any place that Polars reads (`s3://`, `gs://`, `az://`, `hf://`, `https://`);
        * a directory of such files, of a Delta table or of an Iceberg table; a `deltalake.DeltaTable` or a `pyiceberg` table;
        * pyarrow Table, RecordBatch, Dataset (only the columns needed are read) or RecordBatchReader (streamed, and so read once);
        * anything with `__arrow_c_stream__`, such as a DuckDB relation or a pandas frame (where NaN means missing, hence null).

    Returns
    -------
    LazyFrame
        The columns of the source as they are. Files are not read before the plan runs, and then only the columns that are needed.

    Raises
    ------
    RankEvalError
        If the source is of another kind, a suffix is not known, or a local file is missing or empty. A RecordBatchReader that a second plan
        wants to read raises when that plan runs.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> rk.scan({"query_id": [1, 1], "label": [1, 0], "score": [0.2, 0.7]}).collect().shape
    (2, 3)
    """
    if isinstance(source, pl.LazyFrame | pl.DataFrame):
        return source.lazy()
    if isinstance(source, str | Path):
        return scan_path(str(source))
    if isinstance(source, Sequence) and source and all(isinstance(s, str | Path) for s in source):
        return scan_paths([str(s) for s in source])
    for module, class_name, make in _FOREIGN:
        # A class whose module nobody has imported has no objects.
        kind = getattr(sys.modules.get(module), class_name, None)
        if kind is not None and isinstance(source, kind):
            return make(source)
    if isinstance(source, dict) or hasattr(source, "__arrow_c_stream__"):
        # Not `pl.from_arrow`, which makes one Series of structs of a stream.
        return pl.DataFrame(source).lazy()
    msg = (
        f"cannot make a table of {type(source).__name__}: pass a LazyFrame, a DataFrame, an Arrow table, "
        "a dict of columns, or the path of Parquet, IPC, CSV or NDJSON files"
    )
    raise RankEvalError(msg)


def _scan_reader(reader: Any) -> pl.LazyFrame:
    """Stream the batches of a RecordBatchReader, whose rows can be had only once."""
    from polars.io.plugins import register_io_source

    used = False

    def batches(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        nonlocal used
        if used:
            msg = (
                "the RecordBatchReader has been read already, and its rows come only once: make a new reader for each result, or keep "
                "the rows with rk.scan(reader).collect()"
            )
            raise RankEvalError(msg)
        used = True
        yield from answered(map(pl.DataFrame, reader), with_columns, predicate, n_rows)

    schema = pl.DataFrame(reader.schema.empty_table()).schema
    # A plan may use its table in several places: all of them share one reading.
    return register_io_source(batches, schema=schema).cache()


def _eager(source: Any) -> pl.LazyFrame:
    return pl.DataFrame(source).lazy()


def _pandas(source: Any) -> pl.LazyFrame:
    return pl.from_pandas(source).lazy()


#: Classes of other packages: module, name, what makes a LazyFrame of an object.
_FOREIGN: list[tuple[str, str, Callable[[Any], pl.LazyFrame]]] = [
    ("pyarrow.dataset", "Dataset", pl.scan_pyarrow_dataset),
    ("pyarrow", "RecordBatchReader", _scan_reader),
    ("pyarrow", "Table", _eager),
    ("pyarrow", "RecordBatch", _eager),
    ("deltalake", "DeltaTable", pl.scan_delta),
    ("pyiceberg.table", "Table", pl.scan_iceberg),
    ("pandas", "DataFrame", _pandas),
]
