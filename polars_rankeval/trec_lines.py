"""The lines of TREC files: how they are had, which are skipped, and what is said of one that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from os.path import expanduser
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import require_file

#: A file, a glob, several files, or the bytes of one.
TrecSource: TypeAlias = str | Path | bytes | Sequence[str | Path]

LINE, FILE = "rk:line", "rk:file"
#: What a line is shown with at most.
SHOWN = 80
#: Stands for bytes that are no UTF-8.
LOST = "\ufffd"

#: How zlib streams start, which Polars unpacks, or takes for empty: text can start so too, as in x^2.
ZLIB = (b"x\x01", b"x^", b"x\x9c", b"x\xda")

_BLANK, _COMMENT = r"^[ \t]*$", r"^[ \t]*#"


def lines(source: TrecSource, *, number: str | None = None) -> pl.LazyFrame:
    """The lines, null where they are empty, and the file of each; on request with their numbers in it, if it is one file.

    Raises
    ------
    RankEvalError
        If a local file is not there, or none matches a glob; if text looks like a zlib stream.
    """
    files = source if isinstance(source, bytes) else _files(source)
    if isinstance(files, bytes):
        _refuse_zlib("", files)
    else:
        for file in files:
            if "://" not in file:
                with Path(file).open("rb") as opened:
                    _refuse_zlib(f"{file}, ", opened.read(2))
    # A CSV file of one column, since its fields end where its lines do. scan_lines would stop at the first byte that is no UTF-8, with an
    # error that names neither file nor line; here the line can be refused.
    return pl.scan_csv(
        files,
        has_header=False,
        separator="\n",
        quote_char=None,
        encoding="utf8-lossy",
        schema={LINE: pl.String},
        raise_if_empty=False,
        include_file_paths=FILE,
        row_index_name=number,
        row_index_offset=1,
        glob=not isinstance(files, bytes) and any("://" in file for file in files),
    )


def _files(source: str | Path | Sequence[str | Path]) -> list[str]:
    """The files that are meant; those that are not on this machine as they are written."""
    files: list[str] = []
    for path in map(str, [source] if isinstance(source, str | Path) else source):
        local = expanduser(path)
        if "://" in path:
            files.append(path)
        elif has_magic(local) and not Path(local).exists():
            found = sorted(p for p in glob(local, recursive=True) if Path(p).is_file())
            if not found:
                msg = f"no file matches {path!r}"
                raise RankEvalError(msg)
            files += found
        else:
            require_file(local)
            files.append(local)
    if not files:
        msg = "a list of no files: name at least one"
        raise RankEvalError(msg)
    return files


def _refuse_zlib(file: str, start: bytes) -> None:
    if start[:2] in ZLIB:
        msg = (
            f"{file}line 1 starts with {start[:2]!r}, as a zlib stream does, which is not read: use gzip or zstd; "
            "if it is text, put a comment line (#) before it"
        )
        raise RankEvalError(msg)


def to_skip(line: pl.Expr) -> pl.Expr:
    """Whether a line is blank or a comment."""
    return line.is_null() | line.str.contains(_BLANK) | line.str.contains(_COMMENT)


def skipped_lines(source: TrecSource) -> pl.LazyFrame:
    r"""Count the lines of TREC files, and those that are skipped when they are read.

    Parameters
    ----------
    source
        As in `scan_run`.

    Returns
    -------
    LazyFrame
        For each file that is not empty: `file` (null for bytes), `lines`, and of these `blank` (nothing but blanks and tabs) and `comments` (with
        `#` as their first character). The others are records.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> rk.skipped_lines(b"# judged in June\nq1 0 d7 2\n\nq1 0 d8 0\n").collect()
    shape: (1, 4)
    ┌──────┬───────┬───────┬──────────┐
    │ file ┆ lines ┆ blank ┆ comments │
    │ ---  ┆ ---   ┆ ---   ┆ ---      │
    │ str  ┆ i64   ┆ i64   ┆ i64      │
    ╞══════╪═══════╪═══════╪══════════╡
    │ null ┆ 4     ┆ 1     ┆ 1        │
    └──────┴───────┴───────┴──────────┘
    """
    line, file = pl.col(LINE), pl.col(FILE)
    blank = line.is_null() | line.str.contains(_BLANK)
    named = pl.lit(None, dtype=pl.String) if isinstance(source, bytes) else file
    return (
        lines(source)
        .group_by(FILE)
        .agg(
            pl.len().cast(pl.Int64).alias("lines"),
            blank.sum().cast(pl.Int64).alias("blank"),
            line.str.contains(_COMMENT).sum().cast(pl.Int64).alias("comments"),
        )
        .sort(FILE)
        .select(named.alias("file"), "lines", "blank", "comments")
    )


def may_have_comments(source: str | bytes) -> bool:
    """Whether a look at the bytes of one file leaves comments possible; far cheaper than its lines are."""
    if isinstance(source, bytes):
        return b"#" in source
    if not Path(source).is_file() or source.endswith((".gz", ".zst")):
        return True
    with Path(source).open("rb") as file:
        last = b"\n"
        while chunk := file.read(2**20):
            # Documents may have a # in their names; a comment has it behind a blank or the end of a line.
            if b"#" in chunk and any(b in last[-1:] + chunk for b in (b"\n#", b" #", b"\t#")):
                return True
            last = chunk
    return False


def refusal(source: TrecSource, first: dict[str, Any], kind: str, hint: str) -> str:
    """What to say of a line that cannot be read, of the file of that name."""
    file, line = first[FILE], first[LINE]
    # Only a failure looks for the number: counting lines would cost every reader.
    same = lines(source if isinstance(source, bytes) else [file], number="n")
    number = same.filter(pl.col(LINE) == line).select(pl.col("n").min()).collect().item()
    where = f"line {number}" if isinstance(source, bytes) else f"{file}, line {number}"
    shown = line if len(line) <= SHOWN else line[:SHOWN] + "..."
    if LOST in line:
        return f"{where} is no UTF-8: {shown!r}; convert the file to UTF-8 ({LOST!r} stands for what could not be read)"
    return f"{where} is no record of {kind}: {shown!r}; {hint}"
