"""What must not change the numbers: row order, cuts, engine, dtypes, neighbours."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from oracle import TIES
from panel import PANEL
from strategies import Table, tables
from ways import WAYS, Way, called

NAMES = [str(m) for m in PANEL]
#: One measure of each kind of formula.
FEW = ["AP", "AP(rel=2)@3", "RR@5", "ERR", "nDCG@5", "nDCG(gain=exp2)", "Rprec", "Judged@3", "AUC"]
#: Enough to see that rows are where they belong.
FOUR = ["AP", "RR", "nDCG@5", "NumRet"]
#: Every policy that does not depend on the order of the rows.
UNORDERED = [ties for ties in TIES if ties != "order"]


def per_query(frame: Any, names: list[str] = FEW, **options: Any) -> pl.DataFrame:
    """A DataFrame, whichever the frame."""
    result = frame.rankeval.per_query(*names, **options)
    collected = result.collect() if isinstance(result, pl.LazyFrame) else result
    assert isinstance(collected, pl.DataFrame)
    return collected


def assert_same(got: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Equal keys, equal values up to 1e-12."""
    assert_frame_equal(got, expected, rel_tol=1e-12, abs_tol=1e-12)


def made(
    queries: int, length: int, *, seed: int = 1, distinct: int = 5, labels: int = 4
) -> pl.DataFrame:
    """A table of whole numbers that fit every dtype: 0 to `labels - 1`, and 0 to `distinct - 1`."""
    draw = random.Random(seed)
    rows = [
        (
            query,
            doc,
            draw.choice([None, 0, 0, *range(labels)]),
            draw.choice([None, *range(distinct), *range(distinct)]),
        )
        for query in range(queries)
        for doc in range(length)
    ]
    draw.shuffle(rows)
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "label", "score"], orient="row")


# --- rows and cuts --------------------------------------------------------------------------------


@settings(max_examples=20)
@given(table=tables(), ties=st.sampled_from(UNORDERED), seed=st.integers(0, 2**16))
def test_order_of_rows(table: Table, ties: str, seed: int) -> None:
    frame = table.to_frame()
    expected = per_query(frame, ties=ties)
    assert_same(per_query(frame.sample(fraction=1, shuffle=True, seed=seed), ties=ties), expected)
    assert_same(per_query(frame.sort("query_id", "score"), ties=ties), expected)


@settings(max_examples=20)
@given(table=tables(), ties=st.sampled_from(TIES))
def test_split_into_whole_queries(table: Table, ties: str) -> None:
    frame = table.to_frame()
    parts = [
        per_query(part, ties=ties) for part in frame.partition_by("query_id", maintain_order=True)
    ]
    assert_same(pl.concat(parts).sort("query_id"), per_query(frame, ties=ties))


@pytest.mark.parametrize("ties", TIES)
def test_interleaved_or_contiguous(ties: str, way: Way) -> None:
    frame = made(6, 30)
    contiguous = frame.sort("query_id", maintain_order=True)
    expected = per_query(frame, ties=ties)
    assert_same(way(contiguous, lambda f: f.rankeval.per_query(*FEW, ties=ties)), expected)


@pytest.mark.parametrize("ties", TIES)
def test_engines_and_cuts(ties: str) -> None:
    frame = made(40, 60, seed=3)
    expected = WAYS["in-memory"](frame, lambda f: f.rankeval.per_query(*NAMES, ties=ties))
    chunked = pl.concat([frame[i : i + 97] for i in range(0, frame.height, 97)], rechunk=False)
    with pl.Config(streaming_chunk_size=64):
        for way in WAYS.values():
            got = way(chunked, lambda f: f.rankeval.per_query(*NAMES, ties=ties))
            assert_same(got, expected)


@pytest.mark.parametrize("ties", TIES)
def test_other_queries_and_columns_do_not_matter(ties: str) -> None:
    frame = made(8, 25, seed=4)
    expected = per_query(frame, ties=ties)
    for query in range(8):
        alone = frame.filter(pl.col("query_id") == query)
        assert_same(per_query(alone, ties=ties), expected.filter(pl.col("query_id") == query))
    wide = frame.with_columns(
        pl.lit(float("nan")).alias("queries"), pl.lit(None).alias("lo"), pl.lit("x").alias("len")
    )
    assert_same(per_query(wide, ties=ties), expected)


@pytest.mark.parametrize("ties", TIES)
def test_other_measures_do_not_matter(ties: str) -> None:
    frame = made(5, 30, seed=5)
    together = per_query(frame, NAMES, ties=ties)
    for name in NAMES:
        alone = frame.rankeval.per_query(name, ties=ties)  # type: ignore[attr-defined]
        assert_same(alone, together.select("query_id", name))
    backwards = frame.rankeval.per_query(*NAMES[::-1], ties=ties)  # type: ignore[attr-defined]
    assert_same(backwards.select("query_id", *NAMES), together)


def cut_short(plan: Callable[[Any], Any], frame: Any) -> Any:
    """Part of the result."""
    return plan(frame.rankeval.per_query(*NAMES))


def test_the_result_may_be_cut_short(way: Way) -> None:
    frame = made(10, 20)
    expected = per_query(frame, NAMES)
    plans: dict[str, Callable[[Any], Any]] = {
        "filter": lambda f: f.filter(pl.col("query_id") == 7),
        "filter by value": lambda f: f.filter(pl.col("AP") > 0.3),
        "head": lambda f: f.head(2),
        "tail": lambda f: f.tail(2),
        "select": lambda f: f.select("RR", "NumRel"),
        "length": lambda f: f.select(pl.len()),
    }
    for plan in plans.values():
        got = way(frame, partial(cut_short, plan))
        assert_same(got, plan(expected))


# --- dtypes ---------------------------------------------------------------------------------------

FLOATS: list[Any] = [pl.Float16(), pl.Float32(), pl.Float64()]
INTEGERS: list[Any] = [
    pl.Int8(),
    pl.Int16(),
    pl.Int32(),
    pl.Int64(),
    pl.Int128(),
    pl.UInt8(),
    pl.UInt16(),
    pl.UInt32(),
    pl.UInt64(),
    pl.UInt128(),
]
#: One policy for each way to order rows.
THREE = ("block", "best", "doc")
NUMBERS = [*FLOATS, *INTEGERS, pl.Decimal(10, 2), pl.Decimal(38, 10)]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("ties", THREE)
def test_dtype_of_score(dtype: pl.DataType, ties: str) -> None:
    frame = made(6, 20)
    for table in (frame, frame.lazy()):
        cast = table.with_columns(pl.col("score").cast(dtype))
        assert_same(per_query(cast, FOUR, ties=ties), per_query(frame, FOUR, ties=ties))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("ties", THREE)
def test_dtype_of_label(dtype: pl.DataType, ties: str) -> None:
    frame = made(6, 20)
    for table in (frame, frame.lazy()):
        cast = table.with_columns(pl.col("label").cast(dtype))
        assert_same(per_query(cast, FOUR, ties=ties), per_query(frame, FOUR, ties=ties))


@pytest.mark.parametrize("ties", TIES)
def test_boolean_label(ties: str) -> None:
    frame = made(6, 20, labels=2)
    cast = frame.with_columns(pl.col("label").cast(pl.Boolean))
    assert_same(per_query(cast, FOUR, ties=ties), per_query(frame, FOUR, ties=ties))


@pytest.mark.parametrize("column", ["label", "score"])
def test_column_of_nulls(column: str, way: Way) -> None:
    frame = made(3, 5).with_columns(pl.lit(None, dtype=pl.Int64).alias(column))
    untyped = frame.with_columns(pl.lit(None).alias(column))
    assert untyped.schema[column] == pl.Null
    got = way(untyped, lambda f: f.rankeval.per_query(*FOUR))
    assert_same(got, per_query(frame, FOUR))


DECIMALS = [("-", ".99"), ("-", ".98"), ("-", ".00"), ("", ".00"), ("", ".01"), ("", ".99")]
EXTREMES: dict[str, tuple[Any, list[Any]]] = {
    "Int8": (pl.Int8(), [-128, -127, -1, 0, 1, 127]),
    "Int32": (pl.Int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "UInt32": (pl.UInt32(), [0, 1, 2**31 - 1, 2**31, 2**32 - 1]),
    "Int64": (pl.Int64(), [-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "UInt64": (pl.UInt64(), [0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "Int128": (pl.Int128(), [-(2**127), -(2**64), -1, 0, 1, 2**64, 2**64 + 1, 2**127 - 1]),
    "UInt128": (pl.UInt128(), [0, 1, 2**64, 2**64 + 1, 2**128 - 1]),
    "Float16": (pl.Float16(), [-math.inf, -65504.0, -6e-8, 0.0, 6e-8, 65504.0, math.inf]),
    "Float32": (pl.Float32(), [-math.inf, -3e38, -1e-45, 0.0, 1e-45, 1.0, 1 + 2**-23, math.inf]),
    "Float64": (pl.Float64(), [-math.inf, -1e308, -5e-324, 0.0, 5e-324, 1.0, 1e308, math.inf]),
    "Decimal": (
        pl.Decimal(38, 2),
        [Decimal(sign + "9" * 36 + hundredths) for sign, hundredths in DECIMALS],
    ),
}


@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("ties", THREE)
def test_extreme_scores_keep_their_order(kind: str, ties: str, way: Way) -> None:
    # Each score is there twice, so that its neighbours must be told apart and its equal must not.
    dtype, scores = EXTREMES[kind]
    draw = random.Random(5)
    cells = [
        (query, i % 3 and draw.choice([0, 1, 3]), place, doc)
        for query in ("a", "b", "c")
        for i, place in enumerate([*range(len(scores))] * 2)
        for doc in [f"{query}{i}"]
    ]
    draw.shuffle(cells)
    places = pl.DataFrame(cells, schema=["query_id", "label", "score", "doc_id"], orient="row")
    values = pl.Series(scores, dtype=dtype)
    table = places.with_columns(values.gather(places["score"]).alias("score"))
    got = way(table, lambda f: f.rankeval.per_query(*FOUR, ties=ties))
    assert_same(got, per_query(places, FOUR, ties=ties))


# --- keys -----------------------------------------------------------------------------------------

UTC = dt.UTC
KEYS: dict[str, tuple[Any, list[Any]]] = {
    **EXTREMES,
    "Int16": (pl.Int16(), [-(2**15), -1, 0, 1, 2**15 - 1]),
    "UInt8": (pl.UInt8(), [0, 1, 127, 128, 255]),
    "UInt16": (pl.UInt16(), [0, 1, 2**15, 2**16 - 1]),
    "Int64, all negative": (pl.Int64(), [-(2**63), -(2**63) + 1, -(2**63) + 2**31]),
    "Int64, just too far apart": (pl.Int64(), [-1, 0, 2**31 - 1]),
    "Boolean": (pl.Boolean(), [False, True]),
    "String": (pl.String(), ["", " ", " a", "a", "a ", "a\x00", "e\u0301", "é", "文", "🦊"]),
    "Binary": (pl.Binary(), [b"", b"\x00", b"\x00\x00", b"a", b"\xff"]),
    "Categorical": (pl.Categorical(), ["z", "a", "é", ""]),
    "Enum": (pl.Enum(["z", "a", "unused", "é", ""]), ["z", "a", "é", ""]),
    "Date": (pl.Date(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "Datetime": (
        pl.Datetime("us"),
        [dt.datetime(1, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(2262, 1, 1, 1, 1, 1, 1)],
    ),
    "Datetime with a zone": (
        pl.Datetime("ns", "Europe/Paris"),
        [
            dt.datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
            dt.datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
        ],
    ),
    "Duration": (
        pl.Duration("ms"),
        [dt.timedelta(-1), dt.timedelta(0), dt.timedelta(milliseconds=1)],
    ),
    "Time": (pl.Time(), [dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59)]),
    "List": (pl.List(pl.Int8), [[], [0], [0, 0], [1]]),
    "Array": (pl.Array(pl.Int8, 2), [[0, 0], [0, 1], [1, 0]]),
    "Struct": (
        pl.Struct({"day": pl.Int8, "user": pl.String}),
        [{"day": d, "user": u} for d in (1, 2) for u in ("", "a", "b")],
    ),
}


@pytest.fixture(params=KEYS)
def keys(request: pytest.FixtureRequest) -> pl.Series:
    """Values of one dtype, each once."""
    dtype, values = KEYS[request.param]
    return pl.Series(values, dtype=dtype)


def test_dtype_of_query(keys: pl.Series, way: Way) -> None:
    frame = made(keys.len(), 12)
    renamed = frame.with_columns(keys.gather(frame["query_id"]).alias("query_id"))
    got = way(renamed, called("per_query", *FOUR))
    named = per_query(frame, FOUR).with_columns(keys.alias("query_id")).sort("query_id")
    assert_same(got, named)


def test_dtype_of_one_of_several_query_columns(keys: pl.Series, way: Way) -> None:
    frame = made(3 * keys.len(), 8)
    first, second = frame["query_id"] // 3, frame["query_id"] % 3
    renamed = frame.with_columns(keys.gather(first).alias("a"), second.alias("b"))
    got = way(renamed, lambda f: f.rankeval.per_query(*FOUR, query=["a", "b"]))
    expected = per_query(frame, FOUR)
    index = pl.int_range(expected.height, eager=True)
    named = expected.select(
        keys.gather(index // 3).alias("a"), (index % 3).alias("b"), pl.exclude("query_id")
    )
    assert_same(got, named.sort("a", "b"))


def test_dtype_of_group(keys: pl.Series, way: Way) -> None:
    frame = made(3 * keys.len(), 8)
    renamed = frame.with_columns(
        keys.gather(frame["query_id"] // 3).alias("by"), pl.col("query_id") % 3
    )
    got = way(renamed, lambda f: f.rankeval.evaluate(*FOUR, by="by"))
    expected = per_query(frame, FOUR).group_by(pl.col("query_id") // 3, maintain_order=True)
    means = expected.agg(pl.len().alias("queries"), pl.col(FOUR).mean())
    named = means.with_columns(keys.alias("by")).select("by", "queries", *FOUR).sort("by")
    assert_same(got, named)


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_one_zero_among_queries(zeros: list[float], dtype: pl.DataType, way: Way) -> None:
    frame = pl.DataFrame(
        {
            "query_id": pl.Series([zeros[0], zeros[1], 1.0], dtype=dtype),
            "label": [0, 1, 1],
            "score": [2, 1, 1],
        }
    )
    got = way(frame, lambda f: f.rankeval.per_query("RR", "NumRet"))
    assert got.select("RR", "NumRet").rows() == [(0.5, 2.0), (1.0, 1.0)]


def test_null_is_a_group(way: Way) -> None:
    frame = made(9, 8)
    third = pl.col("query_id") // 3
    renamed = frame.with_columns(third.replace(1, None).alias("by"), pl.col("query_id") % 3)
    got = way(renamed, lambda f: f.rankeval.evaluate(*FOUR, by="by"))
    expected = frame.with_columns(third.replace(1, -1).alias("by"), pl.col("query_id") % 3)
    means = expected.rankeval.evaluate(*FOUR, by="by")  # type: ignore[attr-defined]
    assert_same(got, means.with_columns(pl.col("by").replace(-1, None)))


def test_one_ranking_or_many(way: Way) -> None:
    frame = made(1, 200, distinct=50)
    once = per_query(frame, FOUR).drop("query_id")
    copies = 300
    many = pl.concat(frame.with_columns(pl.lit(i).alias("query_id")) for i in range(copies))
    got = way(many, lambda f: f.rankeval.per_query(*FOUR)).drop("query_id")
    assert_same(got, pl.concat([once] * copies))


# --- scores and bounds ----------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    table=tables(scores=("float", "float32", "int")),
    power=st.sampled_from([-3, 1, 20]),
    ties=st.sampled_from(TIES),
)
def test_powers_of_two_change_nothing(table: Table, power: int, ties: str) -> None:
    frame = table.to_frame().filter(pl.col("score").abs().fill_null(1) > 1e-300)
    scaled = frame.with_columns(pl.col("score").cast(pl.Float64) * 2.0**power)
    if frame.height:
        assert_same(per_query(scaled, ties=ties), per_query(frame, ties=ties))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("ties", UNORDERED)
def test_one_zero_among_scores(dtype: pl.DataType, ties: str, way: Way) -> None:
    frame = made(4, 12, distinct=1)
    signs = pl.Series([0.0, -0.0] * (frame.height // 2), dtype=dtype)
    signed = frame.with_columns(pl.when(pl.col("score").is_not_null()).then(signs).alias("score"))
    got = way(signed, lambda f: f.rankeval.per_query(*FEW, ties=ties))
    assert_same(got, per_query(frame, ties=ties))


@settings(max_examples=15)
@given(table=tables(), judged_only=st.booleans())
def test_bounds(table: Table, judged_only: bool) -> None:
    frame = table.to_frame()
    by_ties = {
        ties: per_query(frame, ties=ties, judged_only=judged_only).drop("query_id") for ties in TIES
    }
    below, above = by_ties["worst"] - 1e-12, by_ties["best"] + 1e-12
    for name in FEW:
        for ties in ("expected", "order", "doc"):
            middle = by_ties[ties][name]
            assert (below[name] <= middle).all(), (name, ties)
            assert (middle <= above[name]).all(), (name, ties)
        assert (below[name] <= by_ties["block"][name]).all(), name
        if not name.startswith("AP"):
            assert_same(by_ties["block"].select(name), by_ties["expected"].select(name))


@settings(max_examples=15)
@given(table=tables(), ties=st.sampled_from(TIES))
def test_larger_cutoffs_find_no_less(table: Table, ties: str) -> None:
    cutoffs = [1, 2, 3, 5, 8, 13, 10**6]
    for name in ("RR", "Success", "R", "DCG", "CG", "ERR", "RBP", "AP"):
        if name == "AP" and ties == "block":
            continue  # a cut block is a value at thresholds, which can fall
        cut = [f"{name}@{k}" for k in cutoffs]
        frame = table.to_frame()
        result = frame.rankeval.per_query(*cut, ties=ties)  # type: ignore[attr-defined]
        for less, more in pairwise(cut):
            assert (result[less] <= result[more] + 1e-12).all(), (less, more)
        if name != "R":
            uncut = frame.rankeval.per_query(name, ties=ties)  # type: ignore[attr-defined]
            assert_same(result.select(pl.col(cut[-1]).alias(name)), uncut.select(name))
