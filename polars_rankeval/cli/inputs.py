"""What the SOURCE arguments of a command name: files, directories, the sample, standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from polars_rankeval.cli.work import work
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import INFER_ROWS, SVMLIGHT
from polars_rankeval.judge import judge
from polars_rankeval.sample import sample
from polars_rankeval.sources import scan
from polars_rankeval.svmlight import scan_svmlight, svmlight_features
from polars_rankeval.trec import scan_qrels, scan_run

#: Stands for the argument `-`.
STDIN = "standard input"

RUN, QRELS = ".run", ".qrels"
#: Kinds of files that only commands tell by their suffix, since functions of their own read them.
READERS: dict[tuple[str, ...], Callable[[Any], pl.LazyFrame]] = {
    (RUN,): scan_run,
    (QRELS,): scan_qrels,
}


def open_source(sources: Sequence[str], *, scores: Sequence[str] | None = None) -> pl.LazyFrame:
    """The table that arguments name. `scores` are the columns that will be ranked by, None for all there are."""
    paths = list(sources)
    if paths == [STDIN]:
        return _standard_input()
    if STDIN in paths:
        msg = "- reads standard input, and cannot be mixed with files"
        raise RankEvalError(msg)
    if paths == ["sample"] and not Path("sample").exists():
        return sample()
    kinds = {_suffix(path) for path in paths}
    if kinds <= {RUN, QRELS} and (kinds == {RUN, QRELS} or scores is not None):
        return _judged(paths)
    if len(kinds) > 1 and kinds & {*SVMLIGHT, RUN, QRELS}:
        msg = f"all files of one source must be of one kind, got {', '.join(sorted(kinds))}: convert them first, see rankeval convert --help"
        raise RankEvalError(msg)
    if kinds <= set(SVMLIGHT):
        return _svmlight(paths, scores)
    for suffixes, reader in READERS.items():
        if kinds <= set(suffixes):
            return reader(paths)
    return scan(paths[0] if len(paths) == 1 else paths)


def _judged(paths: list[str]) -> pl.LazyFrame:
    """A run and its judgements as one table."""
    runs = [path for path in paths if _suffix(path) == RUN]
    qrels = [path for path in paths if _suffix(path) == QRELS]
    if len(runs) != 1 or not qrels:
        msg = (
            "TREC files are evaluated as one run with its judgements, as in rankeval evaluate bm25.run topics.qrels; "
            "rankeval trec takes more options of trec_eval"
        )
        raise RankEvalError(msg)
    return judge(scan_run(runs), scan_qrels(qrels))


def row_count(sources: Sequence[str]) -> int | None:
    """How many rows there are, if a look at the ends of local Parquet files tells."""
    if all(_suffix(path) in (".parquet", ".pq") and Path(path).is_file() for path in sources):
        return int(pl.scan_parquet(list(sources), glob=False).select(pl.len()).collect().item())
    return None


def _suffix(path: str) -> str:
    return Path(re.sub(r"\.(gz|zst)$", "", path)).suffix.lower()


def _svmlight(paths: list[str], scores: Sequence[str] | None) -> pl.LazyFrame:
    if scores is None:
        found = work(lambda _: [svmlight_features(path) for path in paths], f"reading {paths[0]}")
        features = sorted({number for numbers in found for number in numbers})
        return scan_svmlight(paths, features=features)
    named = [re.fullmatch(r"feature_(\d+)", score) for score in scores]
    features = [int(match[1]) for match in named if match]
    if len(features) < len(scores):
        msg = (
            "an SVMlight file has numbered features and no score: choose those to rank by, as in --score feature_25; "
            f"{paths[0]!r} has {_numbers(work(lambda _: svmlight_features(paths[0]), f'reading {paths[0]}'))}"
        )
        raise RankEvalError(msg)
    return scan_svmlight(paths, features=features)


def _numbers(numbers: list[int]) -> str:
    if len(numbers) > 8:
        return f"{len(numbers)} features from {numbers[0]} to {numbers[-1]}"
    return f"the features {', '.join(map(str, numbers))}" if numbers else "no features"


def _standard_input() -> pl.LazyFrame:
    """The table that comes in, in a format told by its first bytes: it has no suffix."""
    if sys.stdin.isatty():
        msg = "- reads standard input, which is the terminal: pipe a table into it, as in `cat scored.csv | rankeval evaluate -`"
        raise RankEvalError(msg)
    data = sys.stdin.buffer.read()
    if not data.strip():
        msg = "standard input is empty: is there an error before the pipe?"
        raise RankEvalError(msg)
    if data.startswith(b"PAR1"):
        return pl.scan_parquet(BytesIO(data))
    if data.startswith(b"ARROW1"):
        return pl.read_ipc(BytesIO(data)).lazy()
    if data.startswith(b"\xff\xff\xff\xff"):
        return pl.read_ipc_stream(BytesIO(data)).lazy()
    if data.lstrip().startswith(b"{"):
        return pl.scan_ndjson(BytesIO(data), infer_schema_length=INFER_ROWS)
    if data.lstrip().startswith(b"["):
        return pl.read_json(BytesIO(data), infer_schema_length=INFER_ROWS).lazy()
    header = data.partition(b"\n")[0]
    separator = "\t" if header.count(b"\t") > header.count(b",") else ","
    return pl.read_csv(BytesIO(data), separator=separator, infer_schema_length=INFER_ROWS).lazy()
