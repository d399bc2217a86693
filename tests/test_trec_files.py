"""TREC files are read as they are written, and refused where they are not."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from polars_rankeval import trec_batches, trec_regular
from polars_rankeval.trec_batches import Run, ScatteredError, judgements
from polars_rankeval.trec_lines import ZLIB

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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"q Q0 \xff 1 2 t", "is no UTF-8: .*convert the file"),
        (b"q Q0 d\0 1 2 t", "is no record of run"),
        (b"q Q0 d 1 2 t\rq Q0 e 2 1 t", "is no record of run"),
        (b"q Q0\vd 1 2 t u", "is no record of run"),
        ("q Q0 d 1 2 t".encode("utf-16"), "is no UTF-8"),
        (b"\xef\xbb\xbfq Q0 d 1 2 t", "is no record of run"),
    ],
)
def test_what_would_be_read_as_something_else(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.run"
    path.write_bytes(b"\xef\xbb\xbfq Q0 e 1 2 t\r\n# caf\xe9\n" + line)
    with pytest.raises(rk.RankEvalError, match=rf"bad\.run, line [34] {message}"):
        rk.scan_run(path).collect()
    with pytest.raises(rk.RankEvalError, match=rf"^line [34] {message}"):
        rk.scan_run(path.read_bytes()).collect()
    path.write_bytes(path.read_bytes().removesuffix(line))
    assert rk.scan_run(path).collect().rows() == [("q", "e", 2.0)]


def test_skipped_lines_are_counted(tmp_path: Path) -> None:
    assert rk.skipped_lines(TEXT).collect().row(0) == (None, 7, 2, 2)
    (tmp_path / "a.run").write_bytes(TEXT)
    (tmp_path / "b.run.gz").write_bytes(gzip.compress(b" #\n\t\n \r\nq Q0 # 1 2 t\n"))
    (tmp_path / "empty.run").write_bytes(b"")
    counts = rk.skipped_lines(str(tmp_path / "*.run*"))
    assert isinstance(counts, pl.LazyFrame)
    assert counts.collect().rows() == [
        (str(tmp_path / "a.run"), 7, 2, 2),
        (str(tmp_path / "b.run.gz"), 4, 2, 1),
    ]
    assert rk.skipped_lines(tmp_path / "empty.run").collect().height == 0


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "a[1].run").write_bytes(TEXT)  # no glob, since there is such a file
    assert rk.scan_run(tmp_path / "a[1].run").collect().rows() == ROWS
    for path, message in (
        ("a[2].run", "no file matches"),
        ("a[1].rum", "no file"),
        ("b", "no such file"),
    ):
        with pytest.raises(rk.RankEvalError, match=message):
            rk.scan_run(tmp_path / path)
    with pytest.raises(rk.RankEvalError, match="no files"):
        rk.scan_run([])


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
    if set(line.removesuffix("\r")) & set("\r\0\v\f\ufeff\ufffd"):
        raise ValueError
    score = (
        float(parts[4])
        if len(parts) > 5 and "_" not in parts[4] and parts[4].strip() == parts[4]
        else float("nan")
    )
    if math.isnan(score) or not parts[4].isascii():
        raise ValueError
    return parts[0], parts[2], score


@settings(max_examples=300)
@given(lines=st.lists(LINES, max_size=4))
def test_mutated_lines_are_read_right_or_refused(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    assume(not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")))  # compressed, and damaged
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
        if data[:2] in ZLIB:
            raise ValueError
        rows = [row for line in text.split("\n") if (row := fields(line)) is not None]
    except ValueError:
        with pytest.raises(rk.RankEvalError, match="line "):
            rk.scan_run(data).collect()
    else:
        assert rk.scan_run(data).collect().rows() == rows


#: Fields with one blank between them, and as many blanks as there should be, or nearly so.
NEARLY = st.tuples(
    *(st.sampled_from([b"q1", b"1", b"0.5", b"1", b"", b"x"]) for _ in range(6)),
    st.sampled_from([b"", b" ", b"\t", b" x", b"\n", b"\r"]),
).map(lambda parts: b" ".join(parts[:6]) + parts[6])
REGULAR = b"q1 Q0 d 1 0.5 x"


@settings(max_examples=500)
@given(lines=st.lists(st.one_of(NEARLY, st.just(REGULAR), LINES), max_size=4))
def test_what_is_read_fast_is_what_is_read_strictly(lines: list[bytes]) -> None:
    def read(text: bytes) -> pl.DataFrame:
        return trec_regular.regular([text], trec_regular.RUN)

    assert read(REGULAR + b"\n" + REGULAR + b"\n").rows() == [("q1", "d", 0.5)] * 2
    text = b"\n".join([REGULAR, *lines, b""])
    try:
        rows = read(text)
    except trec_regular.IrregularError:
        return
    assert rows.rows() == rk.scan_run(text).collect().rows()


@pytest.mark.parametrize("start", ZLIB)
def test_text_that_looks_like_a_zlib_stream_is_refused(start: bytes, tmp_path: Path) -> None:
    text = start + b"2 Q0 d 1 2 t\n1 Q0 d 1 2 t\n"
    path = tmp_path / "a.run"
    path.write_bytes(text)
    with pytest.raises(rk.RankEvalError, match=r"a.run, line 1 starts with .*zlib"):
        rk.scan_run(path)
    with pytest.raises(rk.RankEvalError, match=r"line 1 starts with .*zlib"):
        rk.scan_run(text)
    assert rk.scan_run(b"# powers\nx^2 Q0 d 1 2 t\n").collect().rows() == [("x^2", "d", 2.0)]


@pytest.mark.parametrize("ties", ["doc", "order"])
def test_what_is_written_evaluates_to_the_same(ties: Any, tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "query_id": ["q1"] * 4 + ["q2"] * 3,
            "doc_id": ["a", "b", "c", "d", "a", "b", "c"],
            "label": [1, None, -1, 0, None, 2, 1],
            "score": [0.1 + 0.2, 1e-300, 0.30000000000000004, None, float("inf"), -0.0, 0.0],
        }
    )
    rk.write_run(table, tmp_path / "run", ties=ties)
    rk.write_qrels(table, tmp_path / "qrels")
    lines = (tmp_path / "run").read_text().splitlines()
    assert [line.split(" ")[3] for line in lines] == ["1", "2", "3"] * 2
    again = rk.judge(rk.scan_run(tmp_path / "run"), rk.scan_qrels(tmp_path / "qrels"))
    for policy in ("doc", "block"):
        wanted = rk.per_query(table, "AP", "nDCG", "Judged", ties=policy)
        assert_frame_equal(
            rk.per_query(again, "AP", "nDCG", "Judged", ties=policy).collect(), wanted
        )


@pytest.mark.parametrize("bad", ["", "a b", "#a", "a\n", None])
def test_ids_that_no_line_can_hold(bad: str | None, tmp_path: Path) -> None:
    table = pl.DataFrame({"query_id": [bad], "doc_id": ["d"], "score": [1.0], "label": [1]})
    with pytest.raises(rk.RankEvalError, match="'query_id'"):
        rk.write_run(table, tmp_path / "run")
    with pytest.raises(rk.RankEvalError, match="'query_id'"):
        rk.write_qrels(table, tmp_path / "qrels")
    with pytest.raises(rk.RankEvalError, match="whole numbers"):
        rk.write_qrels(table.with_columns(query_id=pl.lit("q"), label=1.5), tmp_path / "qrels")


TIDY = st.tuples(
    st.sampled_from(["1", "2", "3"]),
    st.sampled_from(["a", "b#1", '"c', "é"]),
    st.sampled_from(
        [
            "0.5",
            "1e-3",
            "-2",
            "+1",
            "inf",
            "1e400",
            ".5",
            "1d",
            "0x1",
            "nan",
            "1_0",
            " 1",
            "",
            "'1'",
        ]
    ),
    st.sampled_from([" ", " ", " ", " ", "  ", "\t"]),
    st.sampled_from(["t", "t", "t", "t more", "", "t "]),
)


def itself(rows: pl.DataFrame, _topics: pl.DataFrame) -> pl.DataFrame:
    """Rows as they are."""
    return rows.drop("topic")


@settings(max_examples=150)
@given(rows=st.lists(TIDY, min_size=1, max_size=6))
def test_parts_of_a_run_are_the_run(rows: list[tuple[str, ...]], tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("run") / "run"
    path.write_text("".join(f"{q} Q0 {d} 1{gap}{s} {tag}\n" for q, d, s, gap, tag in rows))
    try:
        wanted = rk.scan_run(path).collect()
    except rk.RankEvalError:
        with pytest.raises(rk.RankEvalError, match="line "):
            list(Run(str(path)).parts(itself))
        return
    try:
        got = pl.concat(Run(str(path), part_bytes=8).parts(itself))
    except ScatteredError:
        got = Run(str(path)).whole()
        wanted = wanted.sort("query_id", maintain_order=True)
    assert_frame_equal(got, wanted)


@pytest.mark.parametrize("piece", [1, 50, 10**6])
@pytest.mark.parametrize("size", [1, 30, 64, 10**6])
def test_parts_are_cut_where_topics_start(
    size: int, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trec_batches, "PIECE_BYTES", piece)
    # A topic whose name starts another one, one longer than a part, a comment, a blank line and other gaps.
    lines = [f"{q} Q0 d{i} 1 {i} t" for q in ("q1", "q10", "q3") for i in range(9)]
    lines += ["# q2", "", *(f"q2\tQ0 d{i} 1 3 t" for i in range(9))]
    path = tmp_path / "run"
    path.write_text("\n".join(lines))
    got = list(Run(str(path), part_bytes=size).parts(itself))
    assert (len(got) > 1) == (size <= 64)
    assert_frame_equal(pl.concat(got), rk.scan_run(path).collect())
    assert_frame_equal(
        pl.concat(Run(path.read_bytes(), part_bytes=size).parts(itself)), pl.concat(got)
    )


@pytest.mark.parametrize("piece", [1, 50, 10**6])
def test_text_is_looked_at_in_pieces_of_whole_lines(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trec_batches, "PIECE_BYTES", piece)
    lines = [f"q1 Q0 {'d' * i} 1 {i} t" for i in range(1, 30)]
    (path := tmp_path / "run").write_text("\n".join([*lines, ""]))
    run = Run(str(path))
    (rows,) = run.parts(itself)
    assert run.regular
    assert_frame_equal(rows, rk.scan_run(path).collect())
    # A comment, in whichever piece, makes the part one that is read line by line.
    path.write_text("\n".join([*lines[:20], "# half of it", *lines[20:], ""]))
    run = Run(str(path))
    (again,) = run.parts(itself)
    assert not run.regular
    assert_frame_equal(again, rows)


def test_a_part_may_start_as_a_zlib_stream_does(tmp_path: Path) -> None:
    lines = [f"{q} Q0 d{i} 1 {i} t" for q in ("q1", "x^2", "q3") for i in range(3)]
    (path := tmp_path / "run").write_text("\n".join([*lines, ""]))
    for source in (str(path), path.read_bytes()):
        got = list(Run(source, part_bytes=40).parts(itself))
        assert len(got) > 1
        assert_frame_equal(pl.concat(got), rk.scan_run(path).collect())


def test_a_compressed_run_from_a_pipe_is_not_cut() -> None:
    text = "".join(f"q{i} Q0 d 1 {i} t\n" for i in range(500)).encode()
    got = pl.concat(Run(gzip.compress(text), part_bytes=100).parts(itself))
    assert_frame_equal(got, rk.scan_run(text).collect())


@pytest.mark.parametrize(
    "text",
    [
        "q 0 d 1\nq 0 e -2\n",
        "q 0 d 1\nq  0 e 2",
        "q 0 d +1\n#q 0 e 2\n\nr\t0 e 2\n",
        "q 0 d 1 \nq 0 e 2 \n",
        "\ufeffq 0 d 1\r\n",
        "# none\n",
        "",
    ],
)
def test_judgements_are_what_scan_qrels_reads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text(text)
    assert_frame_equal(judgements(str(path)), rk.scan_qrels(path).collect())


@pytest.mark.parametrize("line", ["q 0  1", "q  e 1", "q 0 e", "q 0 e 1 2", "q 0 e 1.0", "q 0 e x"])
def test_malformed_judgements_are_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text(f"q 0 d 1\n{line}\n")
    with pytest.raises(rk.RankEvalError, match="line 2 "):
        judgements(str(path))
