"""`rankeval trec` prints what trec_eval prints."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path
from random import Random

import pytest

from polars_rankeval import trec_command
from polars_rankeval.trec_batches import Run
from polars_rankeval.trec_command import main
from shared import GOLDEN, needs_golden

PARAMETERS = (
    "-q -m iprec_at_recall..10,.20,.25,.75,.50 -m P.5,7,3 -m recall.20,2000 -m Rprec_mult.5.0,0.2,0.35 "
    "-m utility.2,-1,0,0 -m 11pt_avg..25,.5,.75 -m ndcg.1=3,2=9,4=4.5 -m ndcg_cut.10,20,23.4 -m success.2,5,20"
)
CASES = [
    ("out.test", "", "qrels.test", "results.test"),
    ("out.test", "", "qrels.test.with-comments", "results.test"),
    ("out.comment.test", "", "qrels.comment.test", "results.comment.test"),
    ("out.test.a", "-m all_trec", "qrels.test", "results.test"),
    ("out.test.aq", "-m all_trec -q", "qrels.test", "results.test"),
    ("out.test.aqc", "-m all_trec -q -c", "qrels.test", "results.trunc"),
    ("out.test.aqcM", "-m all_trec -q -c -M100", "qrels.test", "results.trunc"),
    ("out.test.aql", "-m all_trec -m relstring.20 -q -l2", "qrels.rel_level", "results.test"),
    ("out.test.meas_params", PARAMETERS, "qrels.test", "results.test"),
]

RUN = "1 Q0 a 1 3 mine\n1 Q0 b 2 2 mine\n1 Q0 c 3 2 mine\n3 Q0 a 1 1 mine\n"
QRELS = "1 0 b 1\n1 0 d 2\n1 0 c -1\n2 0 a 1\n"


@needs_golden
@pytest.mark.parametrize(("output", "options", "qrels", "run"), CASES)
def test_golden_files_line_for_line(
    output: str, options: str, qrels: str, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options.split(), str(GOLDEN / qrels), str(GOLDEN / run)]) == 0
    wanted = (GOLDEN / output).read_text().splitlines()
    assert capsys.readouterr().out.splitlines() == wanted


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return [str(tmp_path / "qrels"), str(tmp_path / "run")]


def values(text: str, topic: str = "all") -> dict[str, str]:
    rows = [line.split("\t") for line in text.splitlines()]
    return {name.strip(): value for name, t, value in rows if t == topic}


def test_missing_topics_are_told_and_counted_on_request(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "map", "-m", "num_q", *files]) == 0
    output = capsys.readouterr()
    assert "1 topic of" in output.err
    # c stands above b: documents in descending order break the tie.
    assert values(output.out) == {"num_q": "1", "map": f"{1 / 3 / 2:.4f}"}
    assert main(["-c", "-m", "map", "-m", "num_q", "-m", "utility.0,0,1,0", *files]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert values(output.out) == {
        "num_q": "2",
        "map": f"{1 / 3 / 4:.4f}",
        "utility_0,0,1,0": "0.5000",
    }


def test_topics_alone(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-q", "-n", "-m", "relstring", "-m", "gm_map", "-m", "num_ret", *files]) == 0
    assert capsys.readouterr().out == f"{'num_ret':<22}\t1\t3\n{'relstring':<22}\t1\t'-.1'\n"


def test_judged_documents_only(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["-J", "-m", "num_ret", "-m", "recip_rank", "-m", "num_nonrel_judged_ret", *files])
        == 0
    )
    assert values(capsys.readouterr().out) == {
        "num_ret": "1",
        "recip_rank": "1.0000",
        "num_nonrel_judged_ret": "0",
    }


def test_depth_cuts_the_run_before_judged_only_does(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-M", "2", "-J", "-m", "num_ret", "-m", "num_rel", *files]) == 0
    assert values(capsys.readouterr().out) == {"num_ret": "0", "num_rel": "2"}


def test_version_9_compares_scores_as_float32(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1.00000000001 x\n1 Q0 b 2 1.0 x\n")
    files = [str(tmp_path / "qrels"), str(tmp_path / "run")]
    assert main(["-m", "recip_rank", *files]) == 0
    assert values(capsys.readouterr().out) == {"recip_rank": "1.0000"}
    assert main(["--v9", "-m", "recip_rank", *files]) == 0
    assert values(capsys.readouterr().out) == {"recip_rank": "0.5000"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-m mapp", "did you mean"),
        ("-m map.5", "takes no parameters"),
        ("-m P.", "parameters"),
        ("-m P.0", "at least 1"),
        ("-m P.5,5", "twice"),
        ("-m P.x", "cannot read"),
        ("-m utility.1", "four"),
        ("-m iprec_at_recall.2", "from 0 to 1"),
        ("-q -m relstring.x", "relstring"),
        ("-l 0", "at least 1"),
        ("-l x", "invalid"),
        ("--nonsense", "unrecognized"),
    ],
)
def test_arguments_that_cannot_be_read(
    options: str, message: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options.split(), *files]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (b"1 Q0 a 1 3 x\n\n1 Q0 b 2\n", "line 3"),
        (b"1 Q0 a 1 three x\n", "line 1"),
        (b"1 Q0 a 1 3 x\n1 Q0 \xff 1 3 x\n", "line 2"),
        (b"1 Q0 a 1 3 x\n1 Q0 a 1 2 x\n", "document 'a' of query '1'"),
        (b"9 Q0 a 1 3 x\n", "no topic"),
        (b"", "no topic"),
    ],
)
def test_runs_that_cannot_be_read(
    run: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_bytes(run)
    assert main([str(tmp_path / "qrels"), str(tmp_path / "run")]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert "Traceback" not in output.err


def test_files_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no"), str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("rankeval trec: error: ")


@pytest.mark.parametrize("damaged", ["qrels", "run"])
def test_a_damaged_file_is_named(
    damaged: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"qrels": "q 0 d{} {}\n", "run": "q Q0 d{} 1 {} x\n"}
    paths = []
    for name, line in texts.items():
        packed = gzip.compress("".join(line.format(i, i * i) for i in range(999)).encode())
        paths.append(tmp_path / f"{name}.gz")
        paths[-1].write_bytes(packed[:1500] if name == damaged else packed)
    assert main([str(path) for path in paths]) == 2
    assert f"end of file (while reading {tmp_path / damaged}.gz)" in capsys.readouterr().err


def test_comments_are_told_on_standard_error(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", *files]) == 0
    without = capsys.readouterr()
    assert without.err == ""
    for name, comment in zip(files, ("# one\n", "\t#two # three\n#\n"), strict=True):
        Path(name).write_text(Path(name).read_text() + comment)
    assert main(["-c", *files]) == 0
    output = capsys.readouterr()
    assert output.out == without.out
    assert output.err.splitlines() == [
        f"rankeval trec: 1 comment line of {files[0]} skipped",
        f"rankeval trec: 2 comment lines of {files[1]} skipped",
    ]


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "qrels_jg" in capsys.readouterr().out


@pytest.mark.parametrize("options", ["-m all_trec", "-q", "-q -c -l 2", "-q --v9", "-M 3", "-J -q"])
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_lines_and_the_size_of_parts_do_not_matter(
    options: str,
    seed: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run as rankers write it, for which all rows but a few are counted only, and the same run shuffled."""
    random = Random(seed)
    (tmp_path / "qrels").write_text(
        "".join(
            f"t{t} 0 d{d} {random.choice([-1, 0, 0, 1, 2, 3])}\n"
            for t in range(9)
            for d in random.sample(range(30), random.randrange(1, 8))
        )
    )
    topics = [
        [
            f"t{t} Q0 d{d} 1 {score} x\n"
            for d, score in zip(
                random.sample(range(30), 20),
                sorted(
                    (random.choice([5, 4.5, random.random(), -1]) for _ in range(20)), reverse=True
                ),
                strict=True,
            )
        ]
        for t in random.sample(range(12), 8)
    ]
    ordered = "".join(line for lines in topics for line in lines)
    shuffled = "".join(line for lines in topics for line in random.sample(lines, len(lines)))
    scattered = [line for lines in topics for line in lines]
    random.shuffle(scattered)
    outputs = []
    for part_bytes in (10**6, 900):
        monkeypatch.setattr(trec_command, "Run", partial(Run, part_bytes=part_bytes))
        for run in (ordered, shuffled, "".join(scattered)):
            (tmp_path / "run").write_text(run)
            assert main([*options.split(), str(tmp_path / "qrels"), str(tmp_path / "run")]) == 0
            outputs.append(capsys.readouterr().out)
    assert outputs[0].count("\n") > 10
    assert set(outputs) == {outputs[0]}
