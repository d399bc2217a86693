"""Bytes as a column: the same bytes, seen and not copied, and let go with the column."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_rankeval import arrow_bytes
from polars_rankeval.arrow_bytes import numbers


@given(st.binary())
def test_the_numbers_are_the_bytes(text: bytes) -> None:
    column = numbers(text)
    assert column.dtype == pl.UInt8
    assert bytes(column.to_list()) == text


@pytest.mark.parametrize("used", [lambda s: s, lambda s: s.slice(2, 3), lambda s: s.to_frame()])
def test_the_text_lives_as_long_as_what_looks_at_it(
    used: Callable[[pl.Series], object],
) -> None:
    text = bytes(range(200)) * 5
    before = sys.getrefcount(text)
    column = numbers(text)
    assert sys.getrefcount(text) == before + 1
    view = used(column)
    del column
    gc.collect()
    assert sys.getrefcount(text) == before + 1
    del view
    gc.collect()
    assert sys.getrefcount(text) == before
    assert not arrow_bytes._held


def test_results_outlive_the_text() -> None:
    kept = numbers(b"a b" * 1000).filter(pl.Series([True, False, True] * 1000))
    assert not arrow_bytes._held
    assert kept.unique().sort().to_list() == [ord("a"), ord("b")]


def test_threads_may_drop_columns() -> None:
    def total(number: int) -> int:
        text = bytes([number]) * 10_000
        return sum(int(numbers(text).cast(pl.Int64).sum()) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, range(20))) == [n * 500_000 for n in range(20)]
    assert not arrow_bytes._held
