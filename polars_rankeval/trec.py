"""TREC files: runs and qrels as lazy tables, and back.

Lines are read, split and checked by one native plan, so files larger than memory stream through it. A line that is neither a
record, nor blank, nor a comment is refused when the plan runs, with its file and number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from polars_rankeval._typing import Source
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import is_table_file
from polars_rankeval.sources import scan
from polars_rankeval.trec_lines import FILE, LINE, LOST, TrecSource, lines, refusal, to_skip

# Fields end at blanks and tabs. Other white space of ASCII and NUL end them in C, hence in trec_eval; a byte order mark looks like nothing
# and makes another id; LOST stands for bytes that are no UTF-8. A line that holds one of these is refused.
_NEVER = f"\r\0\v\f\ufeff{LOST}"
_CHARACTER = rf"[^ \t{_NEVER}]"
_FIELD = rf"[ \t]+({_CHARACTER}+)"
_SKIPPED_FIELD = rf"[ \t]+{_CHARACTER}+"
_FIRST = rf"^[ \t]*([^# \t{_NEVER}]{_CHARACTER}*)"


@dataclass(frozen=True)
class _Format:
    """How the lines of a kind of file read."""

    name: str
    pattern: str
    #: the columns that the groups of the pattern become, in order
    columns: tuple[str, ...]
    #: of these the ones that make a table; the last is a number of this dtype
    wanted: tuple[str, str, str]
    dtype: pl.DataType
    hint: str

    @property
    def value(self) -> str:
        """The column that is a number."""
        return self.wanted[-1]


# A run may have more than six fields; the others say nothing to an evaluation. What follows the tag starts with a blank, so that there is
# one way only to match a line, which takes half the time.
RUN = _Format(
    "run",
    _FIRST
    + _SKIPPED_FIELD
    + _FIELD
    + _SKIPPED_FIELD
    + _FIELD
    + _FIELD
    + rf"(?:[ \t][^{_NEVER}]*)?$",
    ("query_id", "doc_id", "score", "tag"),
    ("query_id", "doc_id", "score"),
    pl.Float64(),
    "a line of a run is `query Q0 document rank score tag`, the score a number that is not NaN",
)
QRELS = _Format(
    "qrels",
    _FIRST + _SKIPPED_FIELD + _FIELD + _FIELD + r"[ \t]*$",
    ("query_id", "doc_id", "label"),
    ("query_id", "doc_id", "label"),
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

    Fields are separated by blanks or tabs; blank lines and those whose first character is `#` are skipped, and counted by
    `rk.skipped_lines`; gzip and zstd files are read as they are. The rank is not read: an order follows from the scores.

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
        If a file is not there; when the plan runs, for a line that is no record or no UTF-8.

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
    stem = pl.col(FILE).str.extract(r"([^/\\]+?)(?:\.(?:gz|zst|run|txt|trec|res))*$")
    also = {
        **({tag: pl.col("tag")} if tag is not None else {}),
        **({run: stem} if run is not None else {}),
    }
    return _scanned(source, RUN, columns, also)


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
        If a file is not there; when the plan runs, for a line that is no record or no UTF-8.

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
    return _scanned(source, QRELS, columns)


def _scanned(
    source: TrecSource | Source,
    form: _Format,
    columns: Mapping[str, str] | None,
    also: Mapping[str, pl.Expr] | None = None,
) -> pl.LazyFrame:
    """The table of a source, and of the lines of TREC text more columns."""
    if _is_table(source):
        return _renamed(scan(source), form.wanted, columns)
    if columns:
        msg = "columns= names columns of frames, Parquet, IPC, CSV or NDJSON files; TREC text has none"
        raise RankEvalError(msg)
    more = {name: value.alias(name) for name, value in (also or {}).items()}
    read = form.columns if any("tag" in x.meta.root_names() for x in more.values()) else form.wanted
    return _records(source, form, read).select(*form.wanted, *more.values())


def _records(source: TrecSource, form: _Format, wanted: Sequence[str]) -> pl.LazyFrame:
    """The fields of the lines that are records, and the file of each."""
    every = parsed(source, form, wanted)
    schema = every.collect_schema()
    return every.map_batches(
        lambda batch: _only_records(batch, form, source),
        schema={name: dtype for name, dtype in schema.items() if name != LINE},
        streamable=True,
    )


def parsed(source: TrecSource, form: _Format, wanted: Sequence[str]) -> pl.LazyFrame:
    """The fields of every line, its file and the line itself; the number is null or NaN where a line is no record."""
    groups = pl.col(LINE).str.extract_groups(form.pattern)
    fields = {name: groups.struct.field(str(i)) for i, name in enumerate(form.columns, start=1)}
    fields[form.value] = fields[form.value].cast(form.dtype, strict=False)
    return lines(source).select(*(fields[name].alias(name) for name in wanted), FILE, LINE)


def _only_records(batch: pl.DataFrame, form: _Format, source: TrecSource) -> pl.DataFrame:
    """Leave out the lines to skip, and refuse those that are no record."""
    value = batch[form.value]
    wrong = value.is_null()
    if form.dtype.is_float():
        wrong |= value.is_nan().fill_null(True)
    if not wrong.any():
        return batch.drop(LINE)
    malformed = batch.filter(wrong).remove(to_skip(pl.col(LINE)))
    if malformed.height:
        raise RankEvalError(refusal(source, malformed.row(0, named=True), form.name, form.hint))
    return batch.filter(~wrong).drop(LINE)


def last_tag(source: str | Path | bytes) -> str:
    """The last field of the last record, which names the run; empty without a record."""
    if isinstance(source, str | Path) and not str(source).endswith((".gz", ".zst")):
        # The end of a file is enough, unless a comment is long.
        with Path(source).open("rb") as file:
            start = max(file.seek(0, 2) - 2**16, 0)
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
        for line in reversed(lines[1:] if start else lines):
            if match := re.match(RUN.pattern, line):
                return match[4]
    tags = scan_run(source, tag="tag").select(pl.col("tag").last()).collect()
    return str(tags.item() or "")


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
