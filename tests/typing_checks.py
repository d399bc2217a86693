"""Only type-checked, by mypy and pyright, never run: frames come out as they went in, whatever else comes out lazy."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import polars as pl

import polars_rankeval as rk


def data_frame(df: pl.DataFrame) -> None:
    assert_type(rk.per_query(df, "AP", rk.Measure("nDCG", 10)), pl.DataFrame)
    assert_type(rk.per_query(df, "AP", query=["a", "b"], by="model"), pl.DataFrame)
    assert_type(rk.evaluate(df, "AP", score=["a", "b"], weight="w"), pl.DataFrame)
    assert_type(rk.tie_blocks(df, by=["model"]), pl.DataFrame)
    assert_type(rk.check(df), pl.DataFrame)
    assert_type(rk.pr_curve(df, drop_collinear=True), pl.DataFrame)
    assert_type(rk.roc_curve(df, weight="w"), pl.DataFrame)
    assert_type(rk.confusion(df, threshold=0.5, beta=2), pl.DataFrame)
    assert_type(df.pipe(rk.per_query, "AP", ties="doc"), pl.DataFrame)
    assert_type(df.pipe(rk.evaluate, "AP", "nDCG@10", by="model"), pl.DataFrame)


def lazy_frame(lf: pl.LazyFrame) -> None:
    assert_type(rk.per_query(lf, "AP", rk.Measure("nDCG", 10)), pl.LazyFrame)
    assert_type(rk.evaluate(lf, "AP", no_relevant="null"), pl.LazyFrame)
    assert_type(rk.tie_blocks(lf), pl.LazyFrame)
    assert_type(rk.check(lf), pl.LazyFrame)
    assert_type(lf.pipe(rk.evaluate, "AP"), pl.LazyFrame)
    assert_type(lf.pipe(rk.per_query, "AP").collect(), pl.DataFrame)


class Stream:
    """What DuckDB relations, record-batch readers and the like are to Polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def sources(parts: rk.Partitions) -> None:
    assert_type(rk.scan("scored.parquet"), pl.LazyFrame)
    assert_type(rk.scan({"query_id": [1]}), pl.LazyFrame)
    assert_type(rk.evaluate(rk.sample(), "AP"), pl.LazyFrame)
    assert_type(rk.evaluate("scored.parquet", "AP", by="model"), pl.LazyFrame)
    assert_type(rk.per_query(Path("scored.parquet"), "AP", contiguous=True), pl.LazyFrame)
    assert_type(rk.evaluate(["a.csv", "b.csv"], "AP", "RR"), pl.LazyFrame)
    assert_type(rk.per_query({"query_id": [1]}, rk.Measure("AP")), pl.LazyFrame)
    assert_type(rk.evaluate(Stream(), "AP"), pl.LazyFrame)
    assert_type(rk.evaluate(parts, "AP", progress=True), pl.LazyFrame)
    assert_type(rk.check("scored.parquet", query=["a", "b"]), pl.LazyFrame)
    assert_type(rk.tie_blocks(Stream(), by="model"), pl.LazyFrame)
    assert_type(rk.pr_curve("scored.parquet", rel=2, endpoint=True), pl.LazyFrame)
    assert_type(rk.roc_curve({"label": [1]}, query=None), pl.LazyFrame)
    assert_type(rk.confusion("scored.parquet", k=[1, 5]), pl.LazyFrame)
    assert_type(rk.evaluate_files("scored.parquet", "AP", output="ap.parquet"), pl.DataFrame)


def either(frame: pl.DataFrame | pl.LazyFrame) -> None:
    assert_type(rk.evaluate(frame, "AP"), pl.DataFrame | pl.LazyFrame)
    assert_type(rk.check(frame), pl.DataFrame | pl.LazyFrame)


def expressions() -> None:
    assert_type(rk.average_precision("label", pl.col("score"), k=10, ties="expected"), pl.Expr)
    assert_type(rk.ndcg(pl.col("label") > 1, "score", gain="exp2", no_relevant="null"), pl.Expr)
    assert_type(rk.err("label", "score", discount="log2", ties="doc", doc="doc_id"), pl.Expr)


def measures() -> None:
    assert_type(rk.Measure.parse("nDCG@10"), rk.Measure)
    assert_type(rk.Measure("AP").k, int | None)


def mistakes(df: pl.DataFrame) -> None:
    rk.per_query(df, "AP", ties="blocks")  # type: ignore[call-overload]
    rk.per_query(df, "AP", no_relevant=0)  # type: ignore[call-overload]
    rk.per_query(df, 7)  # type: ignore[call-overload]
    rk.evaluate("scored.parquet", "AP", tie="block")  # type: ignore[call-overload]
    rk.evaluate_files("scored.parquet", "AP", output="o", ties="blocks")  # type: ignore[arg-type]
    rk.ndcg("label", "score", gain="exp")  # type: ignore[arg-type]
    rk.ndcg("label", "score", tie="block")  # type: ignore[call-arg]
