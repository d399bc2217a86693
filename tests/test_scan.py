"""Whatever holds a table is evaluated: frames, Arrow objects, pandas, DuckDB, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk

FRAME = pl.DataFrame(
    {
        "query_id": ["a", "a", "b", "b", "b"],
        "doc_id": ["x", "y", "x", "y", "z"],
        "label": [0, 1, 2, None, 0],
        "score": [0.5, 0.25, 0.5, 0.5, None],
    }
)
NAMES = ["AP", "nDCG@10", "RR", "Judged@2"]


def pandas(frame: pl.DataFrame) -> Any:
    pytest.importorskip("pandas")
    return frame.to_pandas(use_pyarrow_extension_array=True)


def duckdb(frame: pl.DataFrame) -> Any:
    module: Any = pytest.importorskip("duckdb")
    return module.connect().from_arrow(frame.to_arrow())


SOURCES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "LazyFrame": lambda frame: frame.lazy(),
    "Arrow": lambda frame: frame.to_arrow(),
    "record batches": lambda frame: frame.to_arrow().to_reader(),
    "dict": lambda frame: frame.to_dict(as_series=False),
    "pandas": pandas,
    "DuckDB": duckdb,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_objects(kind: str) -> None:
    expected = rk.per_query(FRAME, *NAMES)
    assert_frame_equal(rk.scan(SOURCES[kind](FRAME)).collect(), FRAME)
    result = rk.per_query(SOURCES[kind](FRAME), *NAMES)
    assert isinstance(result, pl.LazyFrame)
    assert_frame_equal(result.collect(), expected)


WRITERS: dict[str, Callable[..., Any]] = {
    "parquet": pl.DataFrame.write_parquet,
    "pq": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "feather": pl.DataFrame.write_ipc,
    "csv": pl.DataFrame.write_csv,
    "ndjson": pl.DataFrame.write_ndjson,
    "jsonl": pl.DataFrame.write_ndjson,
    "PARQUET": pl.DataFrame.write_parquet,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_files(suffix: str, tmp_path: Path) -> None:
    expected = rk.per_query(FRAME, *NAMES)
    paths = [tmp_path / f"part.{i}.{suffix}" for i in range(2)]
    for query, path in zip("ab", paths, strict=True):
        WRITERS[suffix](FRAME.filter(query_id=query), path)
    sources: list[Any] = [paths, [str(path) for path in paths], str(tmp_path / f"*.{suffix}")]
    for source in sources:
        assert_frame_equal(rk.per_query(source, *NAMES).collect(), expected)
    one: Any = paths[0]
    assert_frame_equal(rk.per_query(one, *NAMES).collect(), expected.filter(query_id="a"))


def test_a_frame_comes_back_as_it_is() -> None:
    lazy = FRAME.lazy()
    assert rk.scan(lazy) is lazy


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(rk.RankEvalError, match="no such file"):
        rk.scan(tmp_path / "nothing.parquet").collect()


def test_sample() -> None:
    sample = rk.sample()
    assert isinstance(sample, pl.LazyFrame)
    assert_frame_equal(rk.check(sample, by="model").collect(), sample.collect())
    means = rk.evaluate(sample, *NAMES, by="model").collect()
    assert means["queries"].to_list() == [12, 12]
    assert means.null_count().sum_horizontal().item() == 0
