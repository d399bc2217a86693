"""TREC files: runs and qrels as lazy tables, and back.

Lines are read, split and checked by one native plan, so files larger than memory stream through it. A line that is neither a
record, nor blank, nor a comment is refused when the plan runs, with its file and number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import polars as pl

from polars_rankeval._typing import Source
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import is_table_file
from polars_rankeval.sources import scan

#: A file, a glob, several files, or the bytes of one.
TrecSource: TypeAlias = str | Path | bytes | Sequence[str | Path]

_FIELD = r"[ \t]+([^ \t]+)"
_SKIPPED_FIELD = r"[ \t]+[^ \t]+"
_FIRST = r"^[ \t]*([^# \t][^ \t]*)"
_SKIPPED_LINE = r"^[ \t]*(#|$)"
_LINE, _FILE = "rk:line", "rk:file"
IN_MEMORY = "in-mem"
_SHOWN = 80


@dataclass(frozen=True)
class _Format:
    """How the lines of a kind of file read."""

    name: str
    pattern: str
    #: the columns that the groups of the pattern become, in order
    columns: tuple[str, ...]
    #: the one that is a number, and its dtype
    value: str
    dtype: pl.DataType
    hint: str


# A run may have more than six fields; the others say nothing to an evaluation.
_RUN = _Format(
    "run",
    _FIRST + _SKIPPED_FIELD + _FIELD + _SKIPPED_FIELD + _FIELD + _FIELD,
    ("query_id", "doc_id", "score", "tag"),
    "score",
    pl.Float64(),
    "a line of a run is `query Q0 document rank score tag`, the score a number that is not NaN",
)
_QRELS = _Format(
    "qrels",
    _FIRST + _SKIPPED_FIELD + _FIELD + _FIELD + r"[ \t]*$",
    ("query_id", "doc_id", "label"),
    "label",
    pl.Int64(),
    "a line of qrels is `query iteration document label`, the label a whole number",
)


def scan_run(
    source: TrecSource | Source,
    *,
    run: str | None = None,
    tag: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> pl.LazyFrame:
    """Read a TREC run lazily: `query Q0 document rank score tag` on each line.

    Fields are separated by blanks or tabs; blank lines and those that start with `#` are skipped; gzip and zstd files are read as
    they are. The rank is not read: an order follows from the scores.

    Parameters
    ----------
    source
        Path, glob, list of paths or bytes of TREC text. A frame, or a path of Parquet, IPC, CSV or NDJSON files, is taken as it is.
    run
        Add a column of this name with the name of the file that a row comes from, without directory and suffixes.
    tag
        Add a column of this name with the last field of the line.
    columns
        For frames: the column to read for each of `query_id`, `doc_id` and `score`, such as
        `{"query_id": "query-id", "doc_id": "corpus-id"}`.

    Returns
    -------
    LazyFrame
        `query_id`, `doc_id` (String) and `score` (Float64), and the columns asked for.

    Raises
    ------
    RankEvalError
        When the plan runs, for a line that is no record.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> rk.scan_run(b"q1 Q0 d7 1 2.5 bm25").collect()
    shape: (1, 3)
    ┌──────────┬────────┬───────┐
    │ query_id ┆ doc_id ┆ score │
    │ ---      ┆ ---    ┆ ---   │
    │ str      ┆ str    ┆ f64   │
    ╞══════════╪════════╪═══════╡
    │ q1       ┆ d7     ┆ 2.5   │
    └──────────┴────────┴───────┘
    """
    if _is_table(source):
        return _renamed(scan(source), ("query_id", "doc_id", "score"), columns)
    _refuse_columns(columns)
    lines = _records(source, _RUN, _RUN.columns if tag is not None else _RUN.columns[:3])
    stem = pl.col(_FILE).str.extract(r"([^/\\]+?)(?:\.(?:gz|zst|run|txt|trec|res))*$")
    return lines.select(
        "query_id",
        "doc_id",
        "score",
        *([pl.col("tag").alias(tag)] if tag is not None else []),
        *([stem.alias(run)] if run is not None else []),
    )


def scan_qrels(
    source: TrecSource | Source, *, columns: Mapping[str, str] | None = None
) -> pl.LazyFrame:
    r"""Read TREC relevance judgements lazily: `query iteration document label` on each line.

    Parameters
    ----------
    source
        As in `scan_run`.
    columns
        For frames: the column to read for each of `query_id`, `doc_id` and `label`, such as `{"label": "relevance"}`.

    Returns
    -------
    LazyFrame
        `query_id`, `doc_id` (String) and `label` (Int64). A negative label means pooled, not judged.

    Raises
    ------
    RankEvalError
        When the plan runs, for a line that is no record.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> rk.scan_qrels(b"# judged in June\nq1 0 d7 2").collect()
    shape: (1, 3)
    ┌──────────┬────────┬───────┐
    │ query_id ┆ doc_id ┆ label │
    │ ---      ┆ ---    ┆ ---   │
    │ str      ┆ str    ┆ i64   │
    ╞══════════╪════════╪═══════╡
    │ q1       ┆ d7     ┆ 2     │
    └──────────┴────────┴───────┘
    """
    if _is_table(source):
        return _renamed(scan(source), ("query_id", "doc_id", "label"), columns)
    _refuse_columns(columns)
    return _records(source, _QRELS, _QRELS.columns).drop(_FILE)


def _records(source: TrecSource, form: _Format, wanted: Sequence[str]) -> pl.LazyFrame:
    """The fields of the lines that are records, and the file of each."""
    if isinstance(source, bytes) and not source.strip():
        source = b"#"  # Polars takes no empty bytes
    lines = pl.scan_lines(
        source if isinstance(source, str | Path | bytes) else [str(path) for path in source],
        name=_LINE,
        include_file_paths=_FILE,
    )
    groups = pl.col(_LINE).str.extract_groups(form.pattern)
    fields = {name: groups.struct.field(str(i)) for i, name in enumerate(form.columns, start=1)}
    fields[form.value] = fields[form.value].cast(form.dtype, strict=False)
    records = lines.select(*(fields[name].alias(name) for name in wanted), _FILE, _LINE)
    schema = records.collect_schema()
    return records.map_batches(
        lambda batch: _only_records(batch, form),
        schema={name: dtype for name, dtype in schema.items() if name != _LINE},
        streamable=True,
    )


def _only_records(batch: pl.DataFrame, form: _Format) -> pl.DataFrame:
    """Leave out the lines to skip, and refuse those that are no record."""
    value = batch[form.value]
    wrong = value.is_null()
    if form.dtype.is_float():
        wrong |= value.is_nan().fill_null(True)
    if not wrong.any():
        return batch.drop(_LINE)
    malformed = batch.filter(wrong & ~batch[_LINE].str.contains(_SKIPPED_LINE))
    if malformed.height:
        first = malformed.row(0, named=True)
        raise RankEvalError(refusal(first[_FILE], first[_LINE], form.name, form.hint))
    return batch.filter(~wrong).drop(_LINE)


def refusal(file: str, line: str, kind: str, hint: str) -> str:
    """What to say of a line that cannot be read."""
    number = None
    if file != IN_MEMORY:
        # Only a failure looks for the number: counting lines would cost every reader.
        same = pl.scan_lines(file, name=_LINE, row_index_name="n", row_index_offset=1, glob=False)
        number = same.filter(pl.col(_LINE) == line).select(pl.col("n").first()).collect().item()
    where = f"{file}, line {number}" if number is not None else "a line"
    shown = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    return f"{where} is no record of {kind}: {shown!r}; {hint}"


def last_tag(source: str | Path | bytes) -> str:
    """The last field of the last record, which names the run; empty without a record."""
    if isinstance(source, str | Path) and not str(source).endswith((".gz", ".zst")):
        # The end of a file is enough, unless a comment is long.
        with Path(source).open("rb") as file:
            start = max(file.seek(0, 2) - 2**16, 0)
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
        for line in reversed(lines[1:] if start else lines):
            if match := re.match(_RUN.pattern, line):
                return match[4]
    tags = scan_run(source, tag="tag").select(pl.col("tag").last()).collect()
    return str(tags.item() or "")


def undecodable(sources: Sequence[str | Path], error: Exception) -> str | None:
    """What to say of the first line that is no UTF-8, if that is what the error is about."""
    if "utf8" not in str(error) and "utf-8" not in str(error):
        return None
    for source in sources:
        if not Path(source).is_file():
            continue
        with Path(source).open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return f"{source}, line {number} is no UTF-8: {line[:_SHOWN]!r}; convert the file to UTF-8"
    return None


def _is_table(source: object) -> bool:
    """Whether a source is a frame, or files of frames, rather than TREC text."""
    if isinstance(source, str | Path):
        return is_table_file(source)
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        return bool(source) and all(isinstance(s, str | Path) and is_table_file(s) for s in source)
    return not isinstance(source, bytes)


def _renamed(
    frame: pl.LazyFrame, wanted: tuple[str, ...], columns: Mapping[str, str] | None
) -> pl.LazyFrame:
    """The wanted columns under their names, and the others behind them."""
    names = {**{name: name for name in wanted}, **(columns or {})}
    unknown = [name for name in names if name not in wanted]
    if unknown:
        msg = f"columns= maps {unknown[0]!r}, which is no column here: use {', '.join(wanted)}"
        raise RankEvalError(msg)
    schema = frame.collect_schema()
    missing = [source for source in names.values() if source not in schema]
    if missing:
        msg = (
            f"column {missing[0]!r} not found; the table has {', '.join(map(repr, schema))}: "
            f"say which column to read, as in columns={{{wanted[-1]!r}: ...}}"
        )
        raise pl.exceptions.ColumnNotFoundError(msg)
    others = [name for name in schema if name not in {*names.values(), *wanted}]
    return frame.select(*(pl.col(names[name]).alias(name) for name in wanted), *others)


def _refuse_columns(columns: Mapping[str, str] | None) -> None:
    if columns:
        msg = "columns= names columns of frames, Parquet, IPC, CSV or NDJSON files; TREC text has none"
        raise RankEvalError(msg)
