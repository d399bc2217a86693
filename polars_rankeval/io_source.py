"""What a reader of our own owes to the plan that it is a source of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl


def needed(
    columns: Iterable[str], with_columns: list[str] | None, predicate: pl.Expr | None
) -> set[str]:
    """The columns that the plan takes, or looks at."""
    names = set(columns if with_columns is None else with_columns)
    if predicate is not None:
        names.update(predicate.meta.root_names())
    return names


def answered(
    frames: Iterable[pl.DataFrame],
    with_columns: list[str] | None,
    predicate: pl.Expr | None,
    n_rows: int | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows and columns that the plan asks for; no more frames are taken than these need."""
    left = n_rows
    for frame in frames:
        # n_rows counts rows before the filter: Polars pushes head() before filter(), never after.
        rows = frame if left is None else frame.head(left)
        left = None if left is None else left - rows.height
        rows = rows if predicate is None else rows.filter(predicate)
        yield rows if with_columns is None else rows.select(with_columns)
        if left == 0:
            return
