"""Tables from labels and scores with the sizes of groups, as LightGBM and XGBoost keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from polars_rankeval.errors import RankEvalError


def from_groups(label: Any, score: Any, group: Any) -> pl.DataFrame:
    """Make the table of labels, scores and group sizes, as LightGBM and XGBoost keep them.

    Parameters
    ----------
    label, score
        One value per row: a list, array, Series or Arrow array. `score` may also be a mapping of names to several of them.
    group
        Number of rows of each query, in the order of the rows.

    Returns
    -------
    DataFrame
        `query_id` (Int64, from 0 in the order of the groups), `label`, and `score` or the columns of the mapping.

    Raises
    ------
    RankEvalError
        If lengths do not fit, or a size is not at least 1.

    Examples
    --------
    >>> import polars_rankeval as rk
    >>> table = rk.from_groups(label=[1, 0, 0, 2, 1], score=[0.3, 0.1, 0.2, 0.9, 0.8], group=[3, 2])
    >>> rk.evaluate(table, "AP", "nDCG@10")
    shape: (1, 3)
    ┌─────────┬─────┬─────────┐
    │ queries ┆ AP  ┆ nDCG@10 │
    │ ---     ┆ --- ┆ ---     │
    │ u32     ┆ f64 ┆ f64     │
    ╞═════════╪═════╪═════════╡
    │ 2       ┆ 1.0 ┆ 1.0     │
    └─────────┴─────┴─────────┘
    """
    scores = dict(score) if isinstance(score, Mapping) else {"score": score}
    columns = {name: pl.Series(name, values) for name, values in {"label": label, **scores}.items()}
    sizes = pl.Series("group", group)
    if not sizes.dtype.is_integer() or sizes.is_null().any() or not len(sizes) or (sizes < 1).any():
        first = (
            sizes.filter(sizes.is_null() | (sizes < 1)).head(1)
            if sizes.dtype.is_integer()
            else sizes.head(1)
        )
        msg = f"group holds the number of rows of each query, whole numbers of at least 1, got {first.to_list()}"
        raise RankEvalError(msg)
    rows = int(sizes.sum())
    for name, values in columns.items():
        if len(values) != rows:
            msg = f"the sizes in group sum to {rows} rows, but {name} has {len(values)}: pass the sizes of all groups, not a query per row"
            raise RankEvalError(msg)
    queries = pl.select(query_id=pl.int_range(len(sizes), dtype=pl.Int64).repeat_by(pl.lit(sizes)))
    return pl.DataFrame([queries["query_id"].explode(), *columns.values()])
