"""How results leave a command: as text on standard output, or as a file that appears whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl

from polars_rankeval.cli.work import Note, work, written
from polars_rankeval.errors import RankEvalError
from polars_rankeval.trec_writers import write_qrels, write_run

Format: TypeAlias = Literal["table", "markdown", "csv", "json"]

#: The least number of cells to which a text column is shortened where the terminal is narrow.
SHORTEST = 8
GAP = "  "
#: Not printable by themselves, but part of words and of emoji.
JOINERS = "\u200c\u200d"
#: Significant digits that do not change from run to run.
EXACT = 12

#: What writes a plan to a file of a suffix.
WRITERS: dict[str, Callable[..., object]] = {
    ".parquet": lambda lf, path: lf.sink_parquet(path),
    ".pq": lambda lf, path: lf.sink_parquet(path),
    ".csv": lambda lf, path: lf.sink_csv(path),
    ".tsv": lambda lf, path: lf.sink_csv(path, separator="\t"),
    ".ndjson": lambda lf, path: lf.sink_ndjson(path),
    ".jsonl": lambda lf, path: lf.sink_ndjson(path),
    ".arrow": lambda lf, path: lf.sink_ipc(path),
    ".ipc": lambda lf, path: lf.sink_ipc(path),
    ".feather": lambda lf, path: lf.sink_ipc(path),
    ".run": write_run,
    ".qrels": write_qrels,
}


def deliver(
    plan: pl.LazyFrame, *, output: Path | None, style: Format, digits: int, what: str
) -> None:
    """Run a plan, and write its rows to a file or to standard output."""
    if output is not None:
        save(plan, output, digits=digits, what=what)
        return
    frame = work(lambda _: plan.collect(), what)
    show(frame, style, digits)


def show(frame: pl.DataFrame, style: Format, digits: int) -> None:
    """Write a table to standard output; fitted to the terminal if it is one, always the same if not."""
    terminal = sys.stdout.isatty()
    width = _terminal_width() if terminal and style == "table" else None
    for line in lines(frame, style, digits, width):
        sys.stdout.write(line + "\n")


def save(
    plan: pl.LazyFrame,
    output: Path,
    *,
    digits: int,
    what: str,
    writer: Callable[[pl.LazyFrame, Path], object] | None = None,
) -> None:
    """Run a plan and write its rows to a file, as its suffix says."""
    suffix = output.suffix.lower()
    writer = writer or WRITERS.get(suffix)
    if suffix in (".json", ".md") and writer is None:
        style: Format = "json" if suffix == ".json" else "markdown"

        def as_text(lf: pl.LazyFrame, path: Path) -> None:
            text = "\n".join(lines(lf.collect(), style, digits, None))
            path.write_text(text + "\n", encoding="utf-8")

        writer = as_text
    if writer is None:
        known = ", ".join([*WRITERS, ".json", ".md", ".svm"])
        msg = f"cannot tell what to write into {str(output)!r} by its suffix: known are {known}"
        raise RankEvalError(msg)
    chosen = writer

    def job(_: Note) -> None:
        chosen(plan, part)

    with written(output) as part:
        work(job, what)
    if sys.stderr.isatty():
        print(f"wrote {output}", file=sys.stderr)


def lines(frame: pl.DataFrame, style: Format, digits: int, width: int | None) -> Iterator[str]:
    """The text of a table."""
    if style in ("csv", "json"):
        # The last digits depend on the order of parallel sums: the same command prints the same text.
        frame = frame.with_columns(pl.selectors.float().round_sig_figs(EXACT))
    if style == "csv":
        yield from frame.write_csv().splitlines()
    elif style == "json":
        yield frame.write_json()
    else:
        cells = _cells(frame, digits)
        right = [dtype.is_numeric() for dtype in frame.dtypes]
        if style == "markdown":
            yield from _markdown(frame.columns, cells, right)
        else:
            yield from _table(frame.columns, cells, right, width)


def _cells(frame: pl.DataFrame, digits: int) -> list[list[str]]:
    def text(value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, float):
            # No -0.0000: the sign of what rounds to zero says nothing.
            return f"{round(value, digits) + 0.0:.{digits}f}"
        # A line break or an escape sequence in a name would leave its cell.
        return "".join(c if c.isprintable() or c in JOINERS else repr(c)[1:-1] for c in str(value))

    return [[text(value) for value in column.to_list()] for column in frame.iter_columns()]


def _markdown(names: list[str], columns: list[list[str]], right: list[bool]) -> Iterator[str]:
    def line(cells: Any) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    yield line(names)
    yield "|" + "|".join("---:" if r else "---" for r in right) + "|"
    yield from map(line, zip(*columns, strict=True))


def _table(
    names: list[str], columns: list[list[str]], right: list[bool], width: int | None
) -> Iterator[str]:
    """Columns side by side; where the width does not do, text is shortened and then the numbers go on below."""
    widths = [
        max(_width(name), *map(_width, cells), 1) if cells else max(_width(name), 1)
        for name, cells in zip(names, columns, strict=True)
    ]
    groups = [list(range(len(names)))]
    if width is not None:
        for i in sorted(range(len(names)), key=lambda i: -widths[i]):
            excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
            if excess > 0 and not right[i]:
                shortest = max(SHORTEST, _width(names[i]), widths[i] - excess)
                widths[i] = min(widths[i], shortest)
        groups = _groups(widths, right, width)
    for number, group in enumerate(groups):
        if number:
            yield ""
        yield GAP.join(_fit(names[i], widths[i], right=right[i]) for i in group).rstrip()
        yield GAP.join("-" * widths[i] for i in group)
        for row in zip(*(columns[i] for i in group), strict=True):
            cells = (
                _fit(cell, widths[i], right=right[i]) for i, cell in zip(group, row, strict=True)
            )
            yield GAP.join(cells).rstrip()


def _groups(widths: list[int], right: list[bool], width: int) -> list[list[int]]:
    """Columns that fit beside each other; the text columns, which say what the row is, stand in each group."""
    keys = [i for i in range(len(widths)) if not right[i]]
    start = sum(widths[i] + len(GAP) for i in keys)
    groups: list[list[int]] = []
    used = 0
    for i in (i for i in range(len(widths)) if right[i]):
        if not groups or used + widths[i] > width:
            groups.append(list(keys))
            used = start
        groups[-1].append(i)
        used += widths[i] + len(GAP)
    return groups or [keys]


def _fit(text: str, width: int, *, right: bool) -> str:
    if _width(text) > width:
        while _width(text) > width - 1:
            text = text[:-1]
        text += "…"
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _width(text: str) -> int:
    """Cells of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _terminal_width() -> int:
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, 20)
    except OSError:
        return 80
