"""Only type-checked, never run: what goes in comes out, lazy or not."""

from __future__ import annotations

from typing import assert_type

import polars as pl

import polars_rankeval as rk


def data_frame(df: pl.DataFrame) -> None:
    assert_type(rk.per_query(df, "AP", rk.Measure("nDCG", 10)), pl.DataFrame)
    assert_type(rk.per_query(df, "AP", query=["a", "b"], by="model"), pl.DataFrame)
    assert_type(rk.evaluate(df, "AP", score=["a", "b"], weight="w"), pl.DataFrame)
    assert_type(rk.tie_blocks(df, by=["model"]), pl.DataFrame)
    assert_type(rk.check(df), pl.DataFrame)
    assert_type(df.pipe(rk.per_query, "AP", ties="doc"), pl.DataFrame)
    assert_type(df.pipe(rk.evaluate, "AP", "nDCG@10", by="model"), pl.DataFrame)


def lazy_frame(lf: pl.LazyFrame) -> None:
    assert_type(rk.per_query(lf, "AP", rk.Measure("nDCG", 10)), pl.LazyFrame)
    assert_type(rk.evaluate(lf, "AP", no_relevant="null"), pl.LazyFrame)
    assert_type(rk.tie_blocks(lf), pl.LazyFrame)
    assert_type(rk.check(lf), pl.LazyFrame)
    assert_type(lf.pipe(rk.evaluate, "AP"), pl.LazyFrame)
    assert_type(lf.pipe(rk.per_query, "AP").collect(), pl.DataFrame)


def sources() -> None:
    assert_type(rk.scan("scored.parquet"), pl.LazyFrame)
    assert_type(rk.scan({"query_id": [1]}), pl.LazyFrame)
    assert_type(rk.evaluate(rk.sample(), "AP"), pl.LazyFrame)


def expressions() -> None:
    assert_type(rk.average_precision("label", pl.col("score"), k=10, ties="expected"), pl.Expr)
    assert_type(rk.ndcg(pl.col("label") > 1, "score", gain="exp2", no_relevant="null"), pl.Expr)
    assert_type(rk.err("label", "score", discount="log2", ties="doc", doc="doc_id"), pl.Expr)


def measures() -> None:
    assert_type(rk.Measure.parse("nDCG@10"), rk.Measure)
    assert_type(rk.Measure("AP").k, int | None)


def mistakes(df: pl.DataFrame) -> None:
    rk.per_query(df, "AP", ties="blocks")  # type: ignore[arg-type]
    rk.per_query(df, "AP", no_relevant=0)  # type: ignore[arg-type]
    rk.per_query(df, 7)  # type: ignore[arg-type]
    rk.ndcg("label", "score", gain="exp")  # type: ignore[arg-type]
    rk.ndcg("label", "score", tie="block")  # type: ignore[call-arg]
