"""100,000 mutated lines are read as an independent parser reads them, or refused with their number."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_rankeval as rk
from polars_rankeval.trec import QRELS, RUN, parsed
from polars_rankeval.trec_batches import Run, ScatteredError
from polars_rankeval.trec_command import main
from polars_rankeval.trec_lines import LINE, to_skip

COUNT = 50_000
#: What a line says: a record, nothing, or nonsense.
Record = tuple[str, str, float]
SKIP, ERROR = "skip", "error"

NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE
)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def verdict(line: bytes, kind: str) -> Record | str:
    """The rules, in plain Python."""
    text = line.removesuffix(b"\r").decode(errors="replace")
    fields = [field for field in re.split("[ \t]", text) if field]
    if not fields or fields[0].startswith("#"):
        return SKIP
    if set(text) & set("\r\0\v\f\ufeff\ufffd"):
        return ERROR
    if kind == "run":
        if len(fields) < 6 or not NUMBER.fullmatch(fields[4]):
            return ERROR
        return fields[0], fields[2], float(fields[4])
    if len(fields) != 4 or not WHOLE.fullmatch(fields[3]):
        return ERROR
    label = int(fields[3])
    return (fields[0], fields[2], label) if -(2**63) <= label < 2**63 else ERROR


GOOD = {
    "run": lambda r: (
        f"q{r.randrange(4)} Q0 d{r.randrange(10**6)} {r.randrange(99)} {r.uniform(-9, 9)!r} tag".encode()
    ),
    "qrels": lambda r: f"q{r.randrange(4)} 0 d{r.randrange(10**6)} {r.randrange(-2, 5)}".encode(),
}
NUMBERS = [
    *("nan", "NaN", "-nan", "inf", "-Inf", "+infinity", "INFINITY", "infinit", "1e400", "-1e400", "1e-400", "4.9e-324"),
    *("1_000", "+5", "-5", "+-5", "--5", "5-", "0x1F", "0b1", "1e", "e1", "1e+", ".", "-", "+", "", "5.", ".5", "-.5e1"),
    *("1,5", "1.5.1", "1e5.0", "1d5", "1f", "5L", "True", "null", "None", "9" * 400, "-" + "9" * 40, "0" * 300 + "7"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616"),
    *("9007199254740993", "0.1" + "0" * 60 + "1", "2.2250738585072011e-308", "1e23", "8.5e-1", "1E5", "1E+05", "-0", "-0.0"),
    *("\u0661", "\uff11", "\u00b2", "1\u00a0", "\u22121", "\u221e", "'1'", '"1"', "$1", "1%", "1;", "#1", "1#"),
]  # fmt: skip
BYTES = [
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe9", b"\0", b"\r", b"\v", b"\f", b"\x1a", b"\x7f"),
    *(b"\xef\xbb\xbf", b"\xef\xbf\xbd", b"\xc2\xa0", b"\xe3\x80\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\xe2\x80\x8b", b"\xf0\x9f\x98\x80"),
    *(b"\t", b" ", b"  ", b"#", b'"', b"'", b"\\", b",", b"\xff\xfe", b"\xfe\xff", b"\r\r", b"\x1b[0m"),
]  # fmt: skip


def replaced(line: bytes, r: random.Random) -> bytes:
    """One field becomes a number of some kind."""
    fields = line.split(b" ")
    at = r.choice([len(fields) - 1, len(fields) - 2, r.randrange(len(fields))])
    fields[at] = r.choice(NUMBERS).encode()
    return b" ".join(fields)


def columns(line: bytes, r: random.Random) -> bytes:
    """Fields too few, too many, or in another order."""
    fields = line.split(b" ")
    for _ in range(r.randint(1, 3)):
        change = r.randrange(4)
        if change == 0 and fields:
            fields.pop(r.randrange(len(fields)))
        elif change == 1:
            fields.insert(r.randint(0, len(fields)), r.choice([b"x", b"1", b"", b"0.5"]))
        elif change == 2:
            r.shuffle(fields)
        else:
            fields += fields[: r.randrange(3)]
    return b" ".join(fields)


def spliced(line: bytes, r: random.Random) -> bytes:
    """Bytes put in, or in the place of others."""
    for _ in range(r.randint(1, 2)):
        at = r.randint(0, len(line))
        line = line[:at] + r.choice(BYTES) + line[at + r.randrange(2) :]
    return line


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    lambda line, r: line[: r.randrange(len(line))],
    lambda line, r: line[r.randrange(len(line)) :],
    replaced,
    replaced,
    columns,
    columns,
    spliced,
    spliced,
    spliced,
    lambda line, r: bytes(b ^ (1 << r.randrange(8)) if r.random() < 0.05 else b for b in line),
    lambda line, r: r.randbytes(r.randrange(40)),
    lambda line, r: line.decode().encode(r.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])),
    lambda line, r: line.replace(b"d", "dé".encode(r.choice(["utf-8", "latin-1"])), 1),
    lambda line, r: line.replace(b" ", r.choice([b"\t", b"  ", b" \t ", b"\xc2\xa0", b",", b"\v"])),
    lambda line, r: r.choice([b" ", b"\t", b"#", b" #", b"\xef\xbb\xbf"]) + line,
    lambda line, r: line + r.choice([b" ", b"\t", b"\r", b" \r", b" x", b"\r\r", b"#"]),
    lambda line, r: line.replace(b"d", b"d" * r.choice([100, 5_000]), 1),
    lambda line, r: spliced(replaced(line, r), r),
]


def mutated(kind: str, count: int, seed: int) -> Iterator[bytes]:
    """So many lines that were right once."""
    r = random.Random(seed)
    while count:
        line = r.choice(MUTATIONS)(GOOD[kind](r), r)
        if b"\n" not in line:
            count -= 1
            yield line


def test_the_reader_and_the_rules_agree_on_every_line(tmp_path: Path) -> None:
    for kind, form, scan in (("run", RUN, rk.scan_run), ("qrels", QRELS, rk.scan_qrels)):
        lines = list(mutated(kind, COUNT, 1))
        wanted = [verdict(line, kind) for line in lines]
        for share in (ERROR, SKIP):  # and a good many of each kind
            assert sum(x == share for x in wanted) > COUNT // 50
        assert sum(isinstance(x, tuple) for x in wanted) > COUNT // 10
        path = tmp_path / kind
        path.write_bytes(b"".join(line + b"\n" for line in [b"#", *lines]))

        frame = parsed(path, form, form.wanted).with_columns(skip=to_skip(pl.col(LINE)))
        for line, expected, (*row, skip) in zip(
            [b"#", *lines], [SKIP, *wanted], frame.select(*form.wanted, "skip").collect().iter_rows(), strict=True
        ):  # fmt: skip
            number = row[-1]
            got = tuple(row) if number is not None and number == number else SKIP if skip else ERROR  # noqa: PLR0124
            assert got == expected, line

        # What a user gets of the lines that are right, among those that are skipped.
        kept = [line for line, x in zip(lines, wanted, strict=True) if x != ERROR]
        path.write_bytes(b"#\n" + b"\n".join(kept) + b"\n#")
        records = [x for x in wanted if isinstance(x, tuple)]
        assert scan(path).collect().rows() == records
        assert scan(path.read_bytes()).collect(engine="in-memory").rows() == records
        counts = rk.skipped_lines(path).collect().row(0)
        assert counts[1] - counts[2] - counts[3] == len(records)


@pytest.mark.parametrize("kind", ["run", "qrels"])
def test_one_line_among_others(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As users meet it: the error names the file and the line, and nothing else is ever raised."""
    r = random.Random(2)
    path, other = tmp_path / "lines", tmp_path / "other"
    scan: Any = {"run": rk.scan_run, "qrels": rk.scan_qrels}[kind]
    other.write_bytes(b"q1 0 d1 1\n" if kind == "run" else b"q1 Q0 d1 1 0.5 tag\n")
    for turn, line in enumerate(mutated(kind, 400, 3)):
        others = [GOOD[kind](r) for _ in range(r.randrange(6))]
        at = r.randint(0, len(others))
        lines = [*others[:at], line, *others[at:]]
        path.write_bytes(b"\n".join(lines) + b"\n" * r.randrange(2))
        # A byte order mark at the start of the file is no part of the first line.
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        verdicts = [verdict(x, kind) for x in lines]
        records = [x for x in verdicts if isinstance(x, tuple)]
        message = re.escape(f"{path}, line {at + 1} is no ")
        if ERROR in verdicts:
            with pytest.raises(rk.RankEvalError, match=message):
                scan(path).collect()
        else:
            assert scan(path).collect().rows() == records, line
        if kind == "run":
            if ERROR in verdicts:
                with pytest.raises(rk.RankEvalError, match=message):
                    whole_run(str(path))
            else:
                assert sorted(whole_run(str(path)).rows()) == sorted(records), line
        if turn % 4 == 0:
            code = main([str(x) for x in ((other, path) if kind == "run" else (path, other))])
            output = capsys.readouterr()
            assert code in (0, 2)
            if ERROR in verdicts:
                assert re.search(message, output.err)


def whole_run(path: str) -> pl.DataFrame:
    """A run as the command reads it."""
    try:
        found = list(Run(path).parts(lambda rows, _topics: rows.drop("topic")))
    except ScatteredError:
        return Run(path).whole()
    return pl.concat(found) if found else pl.DataFrame()
