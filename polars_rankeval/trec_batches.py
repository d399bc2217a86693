"""A run in parts of whole topics, each joined with its judgements: what makes a long run fast, and fit a small memory.

Runs are written topic by topic, and mostly with one blank between fields. Both are seen while reading, and where they do not hold a
part is read line by line, or the run in one part.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

import polars as pl

from polars_rankeval.chunks import ahead, whole_queries, whole_table
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import is_table_file
from polars_rankeval.trec import scan_qrels, scan_run
from polars_rankeval.trec_regular import QRELS, RUN, STARTS, IrregularError, regular

#: Bytes of a part, unless a topic has more: large enough that a plan costs little beside its rows.
PART_BYTES = 3 * 2**23
#: Bytes that are looked at at once: they fit a cache.
PIECE_BYTES = 2**22
#: The largest piece of memory from which the C library of Linux learns.
KEPT_BYTES = 31 * 2**20
#: Rows of a part of a file that cannot be cut before it is read.
ROWS = 600_000

T = TypeVar("T")
#: What reads the text of a stretch of a run, where it is worked on; or its rows, where it is no plain text.
_Stretch: TypeAlias = Callable[[], Iterator[bytes]] | pl.DataFrame
#: What is done with a part: its rows and topics, as `numbered` gives them.
Work: TypeAlias = Callable[[pl.DataFrame, pl.DataFrame], T]
#: Integer that stands for a topic.
TOPIC = "topic"


class ScatteredError(Exception):
    """A topic stands in several places."""


@dataclass
class Run:
    """The text or the file of a run, read in parts or whole."""

    source: str | bytes
    part_bytes: int = PART_BYTES
    #: all that was read are lines of six fields: no comment was skipped
    regular: bool = True

    def parts(self, function: Work[T]) -> Iterator[T]:
        """Apply a function to each part of the run; parts hold topics whole, and a few are worked on at a time.

        A caller who keeps what it made of the parts drops it when `ScatteredError` says that a topic came twice; the run is then to be read
        `whole`.
        """

        def work(part: tuple[int, _Stretch]) -> tuple[list[str], T]:
            number, stretch = part
            rows, topics = numbered(self._rows(stretch), number)
            if topics["query_id"].n_unique() < topics.height:
                raise ScatteredError
            return topics["query_id"].to_list(), function(rows, topics)

        # Once so much was taken and given back, glibc keeps the memory of one part's text for the next one.
        bytearray(KEPT_BYTES)
        seen: set[str] = set()
        stretches = enumerate(_stretches(self.source, self.part_bytes))
        for topics, result in ahead(work, stretches):
            if not seen.isdisjoint(topics):
                raise ScatteredError
            seen.update(topics)
            if topics:
                yield result

    def whole(self) -> pl.DataFrame:
        """All rows, topics together."""
        self.regular = False
        return scan_run(self.source).collect().sort("query_id", maintain_order=True)

    def _rows(self, stretch: _Stretch) -> pl.DataFrame:
        """The rows of a stretch; errors of the run itself know file and line."""
        if isinstance(stretch, pl.DataFrame):
            self.regular = False
            return stretch.rechunk()
        try:
            return regular(stretch(), RUN)
        except IrregularError:
            self.regular = False
        try:
            # The blank line keeps the name of a topic from looking like the start of a zlib stream.
            return scan_run(b"\n" + b"".join(stretch())).collect()
        except (RankEvalError, pl.exceptions.PolarsError):
            scan_run(self.source).select(pl.col("score").count()).collect()
            raise


def numbered(rows: pl.DataFrame, part: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows whose topics stand together with numbers of these, TOPIC; and the topics: TOPIC and query_id.

    Numbers rise, from one part to the next too.
    """
    number = pl.col("query_id").rle_id().cast(pl.Int64) + part * 2**32
    rows = rows.with_columns(number.set_sorted().alias(TOPIC))
    topic = rows[TOPIC].unique().sort()
    names = rows["query_id"].gather(rows[TOPIC].search_sorted(topic))
    return rows, pl.DataFrame([topic, names])


def judgements(qrels: str) -> pl.DataFrame:
    """What `scan_qrels` reads, in a fraction of the time if the file is plain text with one blank between four fields."""
    if _is_text(qrels):
        try:
            return regular(_pieces(qrels), QRELS)
        except IrregularError:
            pass
    return pl.concat(whole_table(scan_qrels(qrels), ROWS))


def _stretches(run: str | bytes, size: int) -> Iterator[_Stretch]:
    """A run in stretches of whole topics."""
    if _is_text(run):
        with _opened(run) as file:
            if not file.read(4).startswith(STARTS):
                for start, stop in _cuts(file, size):
                    yield partial(_pieces, run, start, stop)
                return
    yield from whole_queries(whole_table(scan_run(run), ROWS), ["query_id"])


def _is_text(source: str | bytes) -> bool:
    """Whether a source has bytes to cut, as tables, pipes and globs have not."""
    return isinstance(source, bytes) or (Path(source).is_file() and not is_table_file(source))


def _opened(text: str | bytes) -> BinaryIO:
    return io.BytesIO(text) if isinstance(text, bytes) else Path(text).open("rb")


def _pieces(text: str | bytes, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """The text from one place to another, in pieces of whole lines."""
    with _opened(text) as file:
        stop = file.seek(0, io.SEEK_END) if stop is None else stop
        while start < stop:
            file.seek(min(start + PIECE_BYTES, stop) - 1)
            file.readline()
            end = min(file.tell(), stop)
            file.seek(start)
            yield file.read(end - start)
            start = end


def _cuts(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Where stretches of a file start and stop: where the topic of the last line that would fit starts.

    Whether what stands before the cut is of other topics is seen by their names, when the lines are read.
    """
    end, start = file.seek(0, io.SEEK_END), 0
    while start < end:
        length = size
        stop = None
        while start + length < end and stop is None:
            stop = _border(file, start, start + length)
            length *= 2
        stop = end if stop is None else stop
        yield start, stop
        start = stop


def _border(file: BinaryIO, start: int, stop: int) -> int | None:
    """Where the topic of the last whole line before `stop` starts, if that is after `start`: looked for from the end."""
    window = 2**16
    while True:
        first = max(stop - window, start)
        file.seek(first)
        text = file.read(stop - first)
        line = text[: text.rfind(b"\n")].rpartition(b"\n")[2]
        topic = line.split(None, 1)[0] if line.strip() else b""
        # With the blank or tab behind it, so that it is no start of a longer name.
        place = (
            text.find(b"\n" + line[: len(topic) + 1]) if line.startswith(topic) and topic else -1
        )
        if place > text.find(b"\n"):
            return first + place + 1
        if first == start:
            return None
        window *= 8
