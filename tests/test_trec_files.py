"""TREC files are read as they are written, and refused where they are not."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_rankeval as rk

ENGINES = ["in-memory", "streaming"]
TEXT = b"q1 Q0 d1 1 0.5 x\r\n\r\n\n# c d e f g h\n \t# c\n  q1\tQ0 \t d2 2 -1e-3 x extra\nq2 Q0 d1 1 inf y"
ROWS = [("q1", "d1", 0.5), ("q1", "d2", -1e-3), ("q2", "d1", float("inf"))]


@pytest.mark.parametrize("engine", ENGINES)
def test_blanks_tabs_comments_and_line_ends(engine: str) -> None:
    assert rk.scan_run(TEXT).collect(engine=engine).rows() == ROWS  # type: ignore[call-overload]


def test_compressed_files_and_globs(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_bytes(TEXT)
    (tmp_path / "b.run.gz").write_bytes(gzip.compress(TEXT))
    (tmp_path / "c.run.zst").write_bytes(TEXT)  # the content tells, not the suffix
    both = rk.scan_run(str(tmp_path / "*.run*"), run="run", tag="tag").collect()
    assert both.sort("run", maintain_order=True).rows() == [
        (*row, tag, name)
        for name in ("a", "b", "c")
        for row, tag in zip(ROWS, ("x", "x", "y"), strict=True)
    ]
    listed = rk.scan_run([tmp_path / "a.run", tmp_path / "b.run.gz"]).collect()
    assert listed.height == 6


def test_empty_sources() -> None:
    assert rk.scan_run(b"").collect().height == 0
    assert rk.scan_qrels(b"# nothing\n").collect().schema == {
        "query_id": pl.String,
        "doc_id": pl.String,
        "label": pl.Int64,
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "line",
    [
        "q Q0 d 1 abc t",
        "q Q0 d 1 nan t",
        "q Q0 d 1 0x1 t",
        "q Q0 d 1 0.5",
        "q",
        "\\N",
        "q Q0 d 1 1_0 t",
    ],
)
def test_malformed_lines_of_runs(line: str, engine: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.run"
    path.write_text(f"q Q0 e 1 2 t\n# comment\n\n{line}\nq Q0 f 1 2 t\n")
    with pytest.raises(rk.RankEvalError, match=r"bad\.run, line 4 ") as error:
        rk.scan_run(path).collect(engine=engine)  # type: ignore[call-overload]
    assert repr(line) in str(error.value)


@pytest.mark.parametrize(
    "line", ["q 0 d x", "q 0 d 1.0", "q 0 d", "q 0 d 1 2", "q 0 d " + "9" * 30]
)
def test_malformed_lines_of_qrels(line: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.qrels"
    path.write_text(f"q 0 e 1\n{line}\n")
    with pytest.raises(rk.RankEvalError, match=r"bad\.qrels, line 2 "):
        rk.scan_qrels(path).collect()


def test_long_lines_are_shortened() -> None:
    with pytest.raises(rk.RankEvalError, match=r"x\.\.\.'") as error:
        rk.scan_run(b"x" * 10_000).collect()
    assert len(str(error.value)) < 400


def test_frames_with_other_names(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query-id": ["q"], "corpus-id": ["d"], "score": [1], "more": [2]})
    frame.write_parquet(tmp_path / "beir.parquet")
    names = {"query_id": "query-id", "doc_id": "corpus-id", "label": "score"}
    wanted = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "label": [1], "more": [2]})
    for source in (frame, frame.lazy(), tmp_path / "beir.parquet"):
        assert_frame_equal(rk.scan_qrels(source, columns=names).collect(), wanted)
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="columns="):
        rk.scan_qrels(frame)
    with pytest.raises(rk.RankEvalError, match="'docs'"):
        rk.scan_run(frame, columns={"docs": "corpus-id"})
    with pytest.raises(rk.RankEvalError, match="columns="):
        rk.scan_run(b"", columns={"doc_id": "corpus-id"})


# Lines that were right once: cut, filled with other bytes, with fields doubled, missing and huge.
PIECES = st.one_of(
    st.sampled_from(
        [b"q1", b"Q0", b"d1", b"1", b"0.5", b"x", b"1e999", b"-", b"nan", b"#", b"9" * 40]
    ),
    st.binary(max_size=6).filter(lambda b: b"\n" not in b),
)
LINES = st.lists(PIECES, max_size=8).map(b" ".join)


def fields(line: str) -> tuple[str, str, float] | None:
    """What a line of a run says, None for one to skip; raises ValueError for a malformed one."""
    parts = [p for p in line.removesuffix("\r").replace("\t", " ").split(" ") if p]
    if not parts or parts[0].startswith("#"):
        return None
    score = (
        float(parts[4])
        if len(parts) > 5 and "_" not in parts[4] and parts[4].strip() == parts[4]
        else float("nan")
    )
    if score != score or not parts[4].isascii():
        raise ValueError
    return parts[0], parts[2], score


@settings(max_examples=300)
@given(lines=st.lists(LINES, max_size=4))
def test_mutated_lines_are_read_right_or_refused(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    try:
        rows = [row for line in data.decode().split("\n") if (row := fields(line)) is not None]
    except ValueError:  # no UTF-8, or a malformed line
        with pytest.raises((rk.RankEvalError, pl.exceptions.ComputeError)):
            rk.scan_run(data).collect()
    else:
        assert rk.scan_run(data).collect().rows() == rows
