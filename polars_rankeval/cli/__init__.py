"""The command `rankeval`: the functions of the package for the terminal.

`main` turns whatever goes wrong into one message and an exit code: 0 done, 1 a gate failed, 2 usage or input, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper

OK, USAGE, INTERRUPTED = 0, 2, 130
#: Written with trec_eval's own options, so this command reads its arguments itself.
TREC = "polars_rankeval.trec_command"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [arg for arg in args if arg != "--debug"]
    try:
        code = _dispatch(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("rankeval: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        if debug:
            raise
        print(_fitted(f"rankeval: {_explain(error)}"), file=sys.stderr)
        return USAGE
    return code


def script() -> None:
    """Run as console script."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by who started it: what is said is said to nobody.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A name that the terminal cannot show is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warn
    # Imports make many objects that stay, among which there is nothing to collect.
    gc.set_threshold(100_000)
    code = main()
    # Without taking the interpreter apart, which takes as long as evaluating a small file; and a plan that still runs in its
    # thread after Ctrl-C would keep the prompt waiting.
    sys.stderr.flush()
    os._exit(code)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Say what other packages warn of without the line of code it comes from."""
    print(_fitted(f"rankeval: note: {message}"), file=sys.stderr)


def _dispatch(args: list[str]) -> int:
    if args[:1] == ["trec"] and find_spec(TREC):
        code: int = import_module(TREC).main(args[1:])
        return code
    if find_spec("cyclopts") is None:
        print(
            "rankeval: the commands need the extra `cli`: pip install 'polars-rankeval[cli]'",
            file=sys.stderr,
        )
        return USAGE
    from polars_rankeval.cli.app import run

    return run(args)


def _fitted(text: str) -> str:
    """The text broken between words where a terminal shows it."""
    if not sys.stderr.isatty():
        return text
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(get_terminal_size().columns, 20)
    return "\n".join(
        fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


def _explain(error: Exception) -> str:
    """One message for people: what went wrong, without the plan it happened in."""
    import polars as pl

    from polars_rankeval.errors import RankEvalError

    text = str(error)
    if isinstance(error, RankEvalError):
        return text
    if isinstance(error, pl.exceptions.PolarsError):
        return re.split(r"\n\n(?:Resolved plan|This error occurred|Error originated)", text)[
            0
        ].strip()
    if isinstance(error, OSError | ImportError):
        return text
    return f"unexpected {type(error).__name__}: {text} (--debug shows where)"
