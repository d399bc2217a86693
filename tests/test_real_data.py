"""Learning-to-rank data, written to Parquet by three libraries, against scikit-learn in a loop."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_rankeval as rk

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "lightgbm_lambdarank"
SCORES = ["feature_0", "feature_1"]
NAMES = ["AP", "nDCG", "nDCG@10", "DCG@10", "AUC", "NumRel"]

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the data are not in the repository")


def features(part: str) -> pl.DataFrame:
    """Query, label and the features that most rows have, of one of the two parts."""
    sizes = [int(size) for size in (FOLDER / f"rank.{part}.query").read_text().split()]
    labels, rows = [], []
    for line in (FOLDER / f"rank.{part}").read_text().splitlines():
        label, *pairs = line.split()
        labels.append(int(label))
        rows.append(dict(pair.split(":") for pair in pairs))
    filled = Counter(chain.from_iterable(rows)).most_common(len(SCORES))
    query = [f"{part}-{i}" for i, size in enumerate(sizes) for _ in range(size)]
    assert len(query) == len(rows)
    return pl.DataFrame(
        {
            "query_id": query,
            "label": pl.Series(labels, dtype=pl.Int8),
            **{
                score: [float(row.get(feature, 0)) for row in rows]
                for score, (feature, _) in zip(SCORES, filled, strict=True)
            },
        }
    )


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    both = pl.concat([features("train"), features("test")])
    # scikit-learn refuses lists of one.
    return both.filter(pl.len().over("query_id") > 1)


@pytest.fixture(scope="module")
def in_a_loop(frame: pl.DataFrame) -> pl.DataFrame:
    """What scikit-learn says of each query and feature."""
    metrics = pytest.importorskip("sklearn.metrics")
    rows = []
    for score in SCORES:
        for (query,), table in frame.group_by("query_id", maintain_order=True):
            label, value = table["label"].to_numpy(), table[score].to_numpy()
            relevant = label > 0
            both = relevant.any() and not relevant.all()
            rows.append(
                {
                    "score": score,
                    "query_id": query,
                    "AP": metrics.average_precision_score(relevant, value) if both else None,
                    "nDCG": metrics.ndcg_score([label], [value]),
                    "nDCG@10": metrics.ndcg_score([label], [value], k=10),
                    "DCG@10": metrics.dcg_score([label], [value], k=10),
                    "AUC": metrics.roc_auc_score(relevant, value) if both else None,
                    "NumRel": float(relevant.sum()),
                }
            )
    return pl.from_dicts(rows, infer_schema_length=None).sort("score", "query_id")


def by_pyarrow(frame: pl.DataFrame, path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(frame.to_arrow(), path, row_group_size=500)


def by_duckdb(frame: pl.DataFrame, path: Path) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("frame", frame.to_arrow())
        connection.sql(f"copy frame to '{path}' (format parquet, compression zstd)")


def by_pandas(frame: pl.DataFrame, path: Path) -> None:
    pytest.importorskip("pandas")
    frame.to_pandas().to_parquet(path, engine="pyarrow", index=True)


def test_more_than_one_query_is_tied(frame: pl.DataFrame) -> None:
    assert frame["query_id"].n_unique() > 200
    blocks = rk.tie_blocks(frame, score=SCORES[1])
    assert blocks["size"].max() > 3  # type: ignore[operator]
    assert blocks["size"].sum() == frame.height


@pytest.mark.parametrize("write", [by_pyarrow, by_duckdb, by_pandas])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_parquet(
    write: Any, engine: Any, frame: pl.DataFrame, in_a_loop: pl.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "scored.parquet"
    write(frame, path)
    plan = rk.per_query(rk.scan(path), *NAMES, score=SCORES)
    got = plan.collect(engine=engine)
    # Without relevant rows scikit-learn has no AP; where all are relevant, AUC is null here too.
    undefined = in_a_loop["AP"].is_null()
    got = got.with_columns(AP=pl.when(~undefined).then("AP"))
    assert_frame_equal(got, in_a_loop, rel_tol=1e-10, abs_tol=1e-12)
