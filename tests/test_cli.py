"""The command `rankeval`: its output, its messages, its exit codes; mostly in this process, and as a process where that matters."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk
from polars_rankeval import cli
from polars_rankeval.cli import output, work
from polars_rankeval.measures.registry import SPECS

pytest.importorskip("cyclopts")
TABLE = rk.sample().collect()


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def rankeval(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def run(*args: object) -> Ran:
        capsys.readouterr()
        code = cli.main([str(arg) for arg in args])
        return Ran(code, *capsys.readouterr())

    return run


SCRIPT = "from polars_rankeval.cli import script; script()"


def process(*args: object, code: str = SCRIPT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


# --- evaluate -------------------------------------------------------------------------------------


def test_evaluate(rankeval: Run) -> None:
    assert rankeval("evaluate", "sample", "-m", "AP", "-m", "nDCG@10", "--by", "model") == (
        0,
        "model  queries      AP  nDCG@10\n"
        "-----  -------  ------  -------\n"
        "bm25        12  0.4969   0.6512\n"
        "dense       12  0.5880   0.7112\n",
        "",
    )


def test_exact_formats(rankeval: Run) -> None:
    expected = rk.evaluate(TABLE, "AP", "RR", "nDCG@10", by="model")
    out = rankeval("evaluate", "sample", "--by", "model", "--format", "csv").out
    assert_frame_equal(pl.read_csv(out.encode()), expected, check_dtypes=False)
    out = rankeval("evaluate", "sample", "--by", "model", "--format", "json").out
    assert_frame_equal(pl.DataFrame(json.loads(out)), expected, check_dtypes=False)


def test_markdown(rankeval: Run) -> None:
    ran = rankeval("evaluate", "sample", "-m", "AP", "--digits", "2", "--format", "markdown")
    assert ran.out == "| queries | AP |\n|---:|---:|\n| 12 | 0.53 |\n"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json", "arrow", "ndjson", "md", "tsv"])
def test_output_file(suffix: str, rankeval: Run, tmp_path: Path) -> None:
    path = tmp_path / f"out.{suffix}"
    ran = rankeval("evaluate", "sample", "--per-query", "--by", "model", "-m", "AP", "-o", path)
    assert ran == (0, "", "")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    expected = rk.per_query(TABLE, "AP", by="model")
    if suffix == "md":
        assert path.read_text().count("\n") == expected.height + 2
    elif suffix == "json":
        assert_frame_equal(pl.read_json(path), expected)
    else:
        assert_frame_equal(rk.scan(path).collect(), expected)


def test_options_reach_the_function(rankeval: Run, tmp_path: Path) -> None:
    table = TABLE.rename(
        {"query_id": "qid", "doc_id": "d", "label": "rel", "score": "s"}
    ).with_columns(t=-pl.col("s"), w=pl.col("qid").str.len_chars())
    path = tmp_path / "t.parquet"
    table.write_parquet(path)
    out = rankeval(
        *(
            "evaluate",
            path,
            "--query",
            "qid",
            "--query",
            "model",
            "--label",
            "rel",
            "--score",
            "s",
            "--score",
            "t",
        ),
        *(
            "--doc",
            "d",
            "--ties",
            "doc",
            "--no-relevant",
            "null",
            "--judged-only",
            "--weight",
            "w",
            "--format",
            "csv",
        ),
        *("--measure", "AP"),
    ).out
    expected = rk.evaluate(
        table,
        "AP",
        query=["qid", "model"],
        label="rel",
        score=["s", "t"],
        doc="d",
        ties="doc",
        no_relevant="null",
        judged_only=True,
        weight="w",
    )
    assert_frame_equal(pl.read_csv(out.encode()), expected, check_dtypes=False)


def test_svmlight(rankeval: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("1 qid:1 1:2 7:1\n0 qid:1 1:1 7:2\n")
    ran = rankeval("evaluate", path, "-m", "RR", "--score", "feature_7", "--score", "feature_1")
    assert ran.out.splitlines()[2:] == ["feature_1        1  1.0000", "feature_7        1  0.5000"]
    ran = rankeval("evaluate", path, "-m", "RR")
    assert ran.code == 2
    assert "as in --score feature_25" in ran.err
    assert "the features 1, 7" in ran.err


@pytest.mark.parametrize(
    "data",
    [
        TABLE.write_csv().encode(),
        TABLE.write_csv(separator="\t").encode(),
        TABLE.write_ndjson().encode(),
        TABLE.write_json().encode(),
        *(
            (getattr(TABLE, write)(buffer := io.BytesIO()), buffer.getvalue())[1]
            for write in ("write_parquet", "write_ipc", "write_ipc_stream")
        ),
    ],
    ids=["CSV", "TSV", "NDJSON", "JSON", "Parquet", "IPC", "IPC stream"],
)
def test_standard_input(data: bytes, rankeval: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    expected = rankeval("evaluate", "sample", "--by", "model").out
    assert rankeval("evaluate", "-", "--by", "model").out == expected


def test_several_sources(rankeval: Run, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for path, part in zip(paths, TABLE.iter_slices(100), strict=True):
        part.write_parquet(path)
    expected = rankeval("evaluate", "sample", "-m", "AP", "--by", "model").out
    for sources in (paths, [tmp_path / "*.parquet"], [tmp_path]):
        assert rankeval("evaluate", *sources, "-m", "AP", "--by", "model").out == expected
        assert rankeval("evaluate", "-m", "AP", "--by", "model", *sources).out == expected


# --- ties, measures, convert ----------------------------------------------------------------------


def test_ties(rankeval: Run) -> None:
    out = rankeval("ties", "sample", "-m", "AP", "--by", "model").out
    assert out.startswith(
        "model  measure   worst  expected    best  decided\n"
        "-----  -------  ------  --------  ------  -------\n"
        "bm25   AP       0.4942    0.5277  0.5651   0.0709\n"
    )
    retrieved = TABLE["score"].count()
    assert f"of {retrieved} retrieved rows" in out
    rows = json.loads(rankeval("ties", "sample", "-m", "RR", "-m", "AP", "--format", "json").out)
    assert [row["measure"] for row in rows] == ["RR", "AP"]
    expected = rk.evaluate(TABLE, "AP", ties="best")["AP"].item()
    assert rows[1]["best"] == pytest.approx(expected)
    blocks = rankeval("ties", "sample", "--by", "model", "--blocks", "--format", "csv").out
    assert pl.read_csv(blocks.encode())["size"].min() == 2


def test_no_ties(rankeval: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("query_id,label,score\n1,1,2\n1,0,1\n")
    assert rankeval("ties", path).out.endswith("No tied rows among 2 retrieved.\n")


def test_catalogue(rankeval: Run) -> None:
    rows = json.loads(rankeval("measures", "--format", "json").out)
    assert [row["measure"].split("[")[0].split("@")[0] for row in rows] == list(SPECS)
    assert all(row["what it is"] for row in rows)


@pytest.mark.parametrize("name", SPECS)
def test_explanation(name: str, rankeval: Run) -> None:
    ran = rankeval("measures", name)
    assert ran.code == 0
    assert "nothing retrieved" in ran.out


def test_explanation_of_a_measure_with_parameters(rankeval: Run) -> None:
    out = rankeval("measures", "P(rel=2)@5", "ndcg").out
    assert "P(rel=2)@5, of P@k" in out
    assert "linear or exp2; default: linear" in out
    assert "ndcg_cut" in out
    assert "all relevant rows first          1.0000" in out


def test_convert(rankeval: Run, tmp_path: Path) -> None:
    for suffix in ("csv", "ndjson", "arrow", "parquet"):
        path = tmp_path / f"t.{suffix}"
        assert rankeval("convert", "sample", "-o", path) == (0, "", "")
        assert_frame_equal(rk.scan(path).collect(), TABLE, check_dtypes=False)
    numbered = TABLE.drop_nulls().with_columns(pl.col("query_id").rank("dense").cast(pl.Int64))
    numbered.write_parquet(tmp_path / "n.parquet")
    assert rankeval("convert", tmp_path / "n.parquet", "-o", tmp_path / "n.svm").code == 0
    assert rankeval("convert", tmp_path / "n.svm", "-o", tmp_path / "m.parquet").code == 0
    again = pl.read_parquet(tmp_path / "m.parquet").rename({"feature_1": "score"})
    assert_frame_equal(again, numbered.select(again.columns), check_dtypes=False)


def test_trec_files(rankeval: Run, tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("1 Q0 a 1 0.5 x\n1 Q0 b 2 0.25 x\n2 Q0 c 1 2 x\n")
    qrels.write_text("1 0 b 1\n1 0 d 1\n2 0 c 2\n2 0 e -1\n")
    wanted = "queries,AP,RR\n2,0.625,0.75\n"
    for files in ([run, qrels], [qrels, run]):
        assert rankeval("evaluate", *files, *["-m", "AP", "-m", "RR", "--format", "csv"]) == (
            0,
            wanted,
            "",
        )
    for suffix in ("parquet", "csv", "ndjson"):
        for first, again in ((run, tmp_path / "b.run"), (qrels, tmp_path / "b.qrels")):
            between = tmp_path / f"{first.suffix[1:]}.{suffix}"
            assert rankeval("convert", first, "-o", between).code == 0
            assert rankeval("convert", between, "-o", again).code == 0
            back, lines = (
                # Without the tag; and numbers may be written otherwise.
                [[float(w) if w[0].isdigit() else w for w in line.split()[:5]] for line in text]
                for text in (again.read_text().splitlines(), first.read_text().splitlines())
            )
            assert back == lines
    judged = tmp_path / "judged.csv"
    judged.write_text("topic,id,grade,bm25\n1,a,0,0.5\n1,b,1,0.75\n")
    names = ["--query", "topic", "--doc", "id", "--label", "grade", "--score", "bm25"]
    assert rankeval("convert", judged, "-o", run, *names).code == 0
    assert rankeval("convert", judged, "-o", qrels, *names).code == 0
    ran = rankeval("evaluate", run, qrels, "-m", "AP", "--format", "csv")
    assert ran.out == "queries,AP\n1,1.0\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("evaluate a.run", "one run with its judgements"),
        ("ties a.run b.run c.qrels", "one run with its judgements"),
        ("convert a.run t.csv -o x.csv", "must be of one kind, got .csv, .run"),
        ("convert t.csv -o x.qrels", "--label COLUMN"),
        ("convert t.csv -o x.run", "--score COLUMN"),
        ("evaluate words.csv", "is there a word among them"),
        ("evaluate header.csv", "or no row at all"),
    ],
)
def test_files_that_do_not_do(
    args: str, message: str, rankeval: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.run").write_text("1 Q0 a 1 0.5 x\n")
    Path("t.csv").write_text("query_id,doc_id\n1,a\n")
    Path("header.csv").write_text("query_id,doc_id,label,score\n")
    Path("words.csv").write_text("query_id,doc_id,label,score\n1,a,good,0.5\n")
    ran = rankeval(*args.split())
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_closed_streams() -> None:
    command = f"{shlex.quote(sys.executable)} -c '{SCRIPT}' evaluate sample"
    for closed in (">&-", "2>&-"):
        assert (
            subprocess.run(
                f"{command} {closed}", shell=True, check=False, cwd=Path(rk.__file__).parents[1]
            ).returncode
            == 0
        )


def test_convert_in_place(rankeval: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    TABLE.write_parquet(path)
    assert rankeval("convert", path, "-o", path).code == 0
    assert_frame_equal(pl.read_parquet(path), TABLE)


# --- mistakes -------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[list[str], list[str]]] = {
    "missing file": (["evaluate", "scored.cvs"], ["no such file", "did you mean 'scored.csv'"]),
    "empty file": (["evaluate", "empty.csv"], ["'empty.csv' is empty"]),
    "directory": (["evaluate", "."], ["several kinds"]),
    "column": (
        ["evaluate", "scored.csv"],
        ["'query_id' not found", "'qid', 'label'", "--query COL"],
    ),
    "column of an option": (
        ["evaluate", "sample", "--by", "modl"],
        ["did you mean 'model'", "--by"],
    ),
    "measure": (
        ["evaluate", "sample", "-m", "nDGC@10"],
        ["did you mean nDCG", "rankeval measures"],
    ),
    "two measures": (["evaluate", "sample", "-m", "x", "-m", "y"], ["2 measures"]),
    "measure to explain": (["measures", "presision"], ["did you mean P"]),
    "option": (["evaluate", "sample", "--qurey", "x"], ["--qurey", "--query", "evaluate --help"]),
    "policy": (["evaluate", "sample", "--ties", "blok"], ['Did you mean "block"', "expected"]),
    "command": (["evalute", "sample"], ['"evalute"', '"evaluate"']),
    "no source": (["evaluate"], ["SOURCE", "evaluate --help"]),
    "stdin and files": (["evaluate", "-", "scored.csv"], ["cannot be mixed"]),
    "weight of queries": (["evaluate", "sample", "--weight", "w", "--per-query"], ["--weight"]),
    "digits": (["evaluate", "sample", "--digits", "-1"], ["--digits"]),
    "no output": (["convert", "sample"], ["--output"]),
    "unknown output": (["convert", "sample", "-o", "x.foo"], ["by its suffix", ".parquet"]),
    "output is a directory": (["convert", "sample", "-o", "dir.csv"], ["is a directory"]),
    "output nowhere": (["convert", "sample", "-o", "no/x.csv"], ["no directory 'no'"]),
    "not Parquet": (["evaluate", "text.parquet"], ["parquet"]),
    "value": (["evaluate", "nan.ndjson"], ["label column 'label' has dtype String"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(
    case: str, rankeval: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scored.csv").write_text("qid,label,score\n1,1,0.5\n")
    (tmp_path / "nan.ndjson").write_text('{"query_id": 1, "label": "x", "score": 1}\n')
    (tmp_path / "text.parquet").write_text("this is text, not Parquet, and long enough\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "dir.csv").mkdir()
    monkeypatch.chdir(tmp_path)
    args, parts = MISTAKES[case]
    before = sorted(p.name for p in tmp_path.iterdir())
    ran = rankeval(*args)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("rankeval: ")
    assert "Traceback" not in ran.err
    assert not [part for part in parts if part not in ran.err], ran.err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_empty_standard_input(rankeval: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "standard input is empty" in rankeval("evaluate", "-").err


def test_failure_leaves_no_file(rankeval: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    TABLE.with_columns(score=pl.lit(float("nan"))).write_parquet(path)
    ran = rankeval("evaluate", path, "-o", tmp_path / "out.csv")
    assert ran.code == 2
    assert "score column 'score' is NaN in 280 rows" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_debug(rankeval: Run) -> None:
    with pytest.raises(rk.RankEvalError):
        rankeval("evaluate", "nowhere.csv", "--debug")


def test_something_unexpected(rankeval: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_dispatch", lambda args: args.index("x"))
    error = "unexpected ValueError: 'x' is not in list (--debug shows where)"
    assert rankeval("evaluate") == (2, "", f"rankeval: {error}\n")


def test_without_the_extra(rankeval: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    ran = rankeval("evaluate", "sample")
    assert (ran.code, ran.out) == (2, "")
    assert "pip install 'polars-rankeval[cli]'" in ran.err


def test_trec_passes_its_arguments_on(rankeval: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    class Module:
        @staticmethod
        def main(argv: list[str]) -> int:
            seen.append(argv)
            return 1

    monkeypatch.setattr(cli, "find_spec", lambda _: True)
    monkeypatch.setattr(cli, "import_module", lambda _: Module)
    assert rankeval("trec", "-m", "map", "qrels", "-q", "--help").code == 1
    assert seen == [["-m", "map", "qrels", "-q", "--help"]]


# --- help -----------------------------------------------------------------------------------------


def test_help_examples_work(rankeval: Run) -> None:
    examples = [
        line.split()[1:]
        for line in rankeval("--help").out.splitlines()
        if line.startswith("  rankeval ")
    ]
    assert len(examples) == 3
    for example in examples:
        ran = rankeval(*example)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out


@pytest.mark.parametrize("command", ["evaluate", "ties", "measures", "convert"])
def test_help(command: str, rankeval: Run) -> None:
    ran = rankeval(command, "--help")
    assert ran.code == 0
    assert f"rankeval {command}" in ran.out
    assert "Examples" in ran.out
    assert "\x1b" not in ran.out
    assert "None" not in ran.out


def test_completion(rankeval: Run) -> None:
    assert "--install-completion" in rankeval("--help").out
    assert "--shell" in rankeval("--install-completion", "--help").out


def test_version(rankeval: Run) -> None:
    assert rankeval("--version") == (0, rk.__version__ + "\n", "")


# --- text of tables -------------------------------------------------------------------------------


def test_wide_characters_are_aligned() -> None:
    pytest.importorskip("rich")
    frame = pl.DataFrame({"query": ["日本語", "é", "a\n\x1b[31mb"], "AP": [0.5, None, 1.0]})
    assert list(output.lines(frame, "table", 2, None)) == [
        "query           AP",
        "------------  ----",
        "日本語        0.50",
        "é             null",
        "a\\n\\x1b[31mb  1.00",
    ]


@pytest.mark.parametrize("width", [20, 30, 40, 60])
def test_width_of_the_terminal(width: int) -> None:
    frame = pl.DataFrame(
        {"model": ["a model with a long name"], **{f"nDCG@{k}": 0.5 for k in range(1, 9)}}
    )
    text = list(output.lines(frame, "table", 4, width))
    assert max(map(len, text)) <= width
    assert sum(line.count("0.5000") for line in text) == 8
    assert any("…" in line for line in text)


def test_nearly_zero() -> None:
    frame = pl.DataFrame({"AP": [-1e-9, float("inf"), float("nan")]})
    assert list(output.lines(frame, "table", 2, None))[2:] == ["0.00", " inf", " nan"]


def test_empty_table() -> None:
    frame = pl.DataFrame(schema={"q": pl.String, "AP": pl.Float64})
    assert list(output.lines(frame, "table", 4, 80)) == ["q  AP", "-  --"]


# --- as a process ---------------------------------------------------------------------------------


def test_broken_pipe() -> None:
    with process("evaluate", "sample", "--per-query", "--by", "model") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(60) == 0


def test_output_to_a_pipe_is_plain() -> None:
    out, err = process("evaluate", "sample", "--by", "model").communicate(timeout=60)
    assert "\x1b" not in out + err
    assert err == ""
    assert out.startswith("model  queries")


STUCK = """
import time
import polars as pl
def sink(plan, path):
    path.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
pl.LazyFrame.sink_csv = sink
from polars_rankeval.cli import script
script()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_leaves_nothing(tmp_path: Path) -> None:
    with process("convert", "sample", "-o", tmp_path / "out.csv", code=STUCK) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "writing\n"
        start = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=50)
    assert (running.returncode, err) == (cli.INTERRUPTED, "rankeval: interrupted\n")
    assert time.monotonic() - start < 5
    assert not list(tmp_path.iterdir())


def test_work_is_interrupted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that waits takes the signal, and the file beside is removed."""
    monkeypatch.setattr("threading.Thread.join", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        work.work(lambda _: time.sleep(0.5), "sleeping")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_written(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), work.written(path) as part:  # noqa: PT012
        part.write_text("half")
        part.write_text("\ud800", encoding="ascii")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
    with work.written(path) as part:
        part.write_text("new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(work, "PATIENCE", 0.05)
    monkeypatch.delenv("TERM", raising=False)

    def job(_: object) -> int:
        time.sleep(0.3)
        return 7

    assert work.work(job, "evaluating x") == 7
    assert "evaluating x, 0." in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_no_progress_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", text := io.StringIO())
    monkeypatch.setattr(work, "PATIENCE", 0.0)
    work.work(lambda _: time.sleep(0.1), "evaluating x")
    assert text.getvalue() == ""
