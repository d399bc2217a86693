"""Long work: done in a thread, so that the terminal sees progress and Ctrl-C is answered at once; files appear whole or not at all."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from polars_rankeval.errors import RankEvalError

T = TypeVar("T")

#: Seconds of work that nobody needs to be told of.
PATIENCE = 0.4
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Note:
    """What the work is about, told while it goes on."""

    def __init__(self, text: str) -> None:
        self.text = text


def work(job: Callable[[Note], T], what: str) -> T:
    """The result of a job; what it does is shown while it lasts, on a terminal.

    The main thread only waits, so it takes Ctrl-C at once, whatever native code the job is in.
    """
    note, results, errors = Note(what), list[T](), list[BaseException]()

    def target() -> None:
        try:
            results.append(job(note))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    start = time.monotonic()
    thread.start()
    shown = False
    try:
        while thread.is_alive():
            thread.join(0.02 if time.monotonic() - start < 2 * PATIENCE else 0.1)
            if animated() and time.monotonic() - start > PATIENCE and thread.is_alive():
                _draw(note.text, time.monotonic() - start)
                shown = True
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
    if errors:
        raise errors[0]
    return results[0]


def animated() -> bool:
    """Whether someone sees what goes on."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _draw(text: str, seconds: float) -> None:
    unicode = (sys.stderr.encoding or "").lower().startswith("utf")
    frames = _FRAMES if unicode else "|/-\\"
    line = f"{frames[int(seconds * 10) % len(frames)]} {text}, {seconds:.1f} s"
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 80
    sys.stderr.write("\r" + line[: max(columns - 1, 1)] + "\x1b[K")
    sys.stderr.flush()


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, which takes its place when all went well and is removed when not."""
    if path.is_dir():
        msg = f"cannot write {str(path)!r}: it is a directory"
        raise RankEvalError(msg)
    if not path.parent.is_dir():
        msg = f"cannot write {str(path)!r}: there is no directory {str(path.parent)!r}"
        raise RankEvalError(msg)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
