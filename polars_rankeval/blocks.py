"""The tie blocks of a table as rows, and its totals: what curves and classification counts are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_rankeval._typing import Names
from polars_rankeval.checks import (
    Check,
    guarded,
    label_checks,
    query_checks,
    refuse,
    row_weight_checks,
    score_checks,
)
from polars_rankeval.errors import RankEvalError
from polars_rankeval.ranking import normalise
from polars_rankeval.sources import scan
from polars_rankeval.table import Columns, label_number, number
from polars_rankeval.terms import Level, counts

SIZE, RELEVANT = "rk:size", "rk:relevant"


class Blocks:
    """The tie blocks of a table, and its totals."""

    def __init__(
        self,
        table: pl.LazyFrame,
        columns: Columns,
        schema: pl.Schema,
        rel: Level,
        weight: str | None,
    ) -> None:
        self.columns, self._table = columns, table
        self._label = counts(label_number(schema, columns.label), rel)
        score = columns.scores[0]
        self._score = normalise(pl.col(score), schema[score]).alias(score)
        self._weight = None if weight is None else pl.col(weight).cast(pl.Float64)

    @classmethod
    def of(
        cls,
        table: Any,
        query: Names | None,
        label: str,
        score: str,
        by: Names | None,
        rel: float | None = None,
        weight: str | None = None,
        *,
        output: Sequence[str],
    ) -> Blocks:
        """Check the table and its values."""
        if rel is not None and not number(rel, above=0):
            msg = f"rel must be a number above 0, got {rel!r}"
            raise RankEvalError(msg)
        lazy = scan(table)
        schema = lazy.collect_schema()
        columns = Columns.of(
            schema, query=query, doc="", label=label, score=score, by=by,
            others=[] if weight is None else [weight], output=output, weight=weight,
        )  # fmt: skip
        lazy = columns.keyed(lazy)
        checks: list[Check] = [
            *query_checks(columns.query),
            *score_checks(score, schema[score]),
            *label_checks(label, schema[label]),
            *(row_weight_checks(weight, schema[weight]) if weight else []),
        ]
        needed = lazy.select(
            list(dict.fromkeys([*columns.keys, label, score, *([weight] if weight else [])]))
        )
        refusal = refuse(needed, columns.keys, checks, needed.collect_schema())
        return cls(guarded(needed, refusal), columns, schema, rel, weight)

    def _sum(self, rows: pl.Expr | None = None) -> pl.Expr:
        """The rows of a group, or some of them, counted or weighed."""
        if self._weight is not None:
            return (self._weight if rows is None else self._weight.filter(rows)).sum()
        return (pl.len() if rows is None else rows.sum()).cast(pl.Int64)

    def frame(self) -> pl.LazyFrame:
        """One row per block with SIZE and RELEVANT, sorted by the keys and descending score."""
        keys, score = self.columns.keys, self.columns.scores[0]
        rows = pl.col(score).is_not_null()
        if self._weight is not None:
            rows &= self._weight > 0  # a row without weight is no row, as in scikit-learn
        return (
            self._table.filter(rows)
            .group_by(*keys, self._score)
            .agg(self._sum().alias(SIZE), self._sum(self._label).alias(RELEVANT))
            .sort(*keys, score, descending=[False] * len(keys) + [True])
        )

    def totals(self, *, retrieved: bool) -> pl.LazyFrame:
        """SIZE and RELEVANT of every ranking, of all its rows or of those retrieved."""
        table = self._table
        if retrieved:
            table = table.filter(pl.col(self.columns.scores[0]).is_not_null())
        return table.group_by(self.columns.keys).agg(
            self._sum().alias(SIZE), self._sum(self._label).alias(RELEVANT)
        )

    def beside_totals(self, points: pl.LazyFrame, *, retrieved: bool) -> pl.LazyFrame:
        """Points with the `totals` of their rankings."""
        totals = self.totals(retrieved=retrieved)
        return points.join(
            totals, on=self.columns.keys, how="left", nulls_equal=True, maintain_order="left"
        )

    def points(self, *, endpoint: bool) -> pl.LazyFrame:
        """One row per block with `threshold`, and `tp` and `fp` down to its end."""
        keys, score = self.columns.keys, self.columns.scores[0]
        blocks = self.frame()
        if endpoint:
            start = (
                blocks.select(keys)
                .unique()
                .with_columns(pl.lit(0).alias(SIZE), pl.lit(0).alias(RELEVANT))
            )
            blocks = pl.concat([start, blocks], how="diagonal_relaxed").sort(
                *keys,
                score,
                descending=[False] * len(keys) + [True],
                nulls_last=[False] * (len(keys) + 1),
            )
        tp = pl.col(RELEVANT).cum_sum().over(keys)
        return blocks.select(
            *keys,
            pl.col(score).alias("threshold"),
            tp.alias("tp"),
            (pl.col(SIZE).cum_sum().over(keys) - tp).alias("fp"),
        )

    def called_at(self, thresholds: list[Any]) -> pl.LazyFrame:
        """Rows called positive, and those of them that are relevant, at each threshold; one pass over the table."""
        outcomes: list[pl.Expr] = []
        for t in thresholds:
            called = (self._score >= t).fill_null(False)
            outcome = pl.struct(
                pl.lit(t).alias("threshold"),
                self._sum(called).cast(pl.Float64).alias("positive"),
                self._sum(called & self._label).cast(pl.Float64).alias("tp"),
            )
            outcomes.append(outcome.alias(f"rk:{len(outcomes)}"))
        keys, names = self.columns.keys, [f"rk:{i}" for i in range(len(thresholds))]
        return (
            self._table.group_by(keys)
            .agg(self._sum().alias(SIZE), self._sum(self._label).alias(RELEVANT), *outcomes)
            .with_columns(pl.concat_list(names).alias("rk:outcome"))
            .drop(names)
            .explode("rk:outcome")
            .unnest("rk:outcome")
        )

    def called_first(self, cuts: list[Any]) -> pl.LazyFrame:
        """The same for the first k rows."""
        keys, hi = self.columns.keys, pl.col("rk:hi")
        blocks = self.frame().with_columns(pl.col(SIZE).cum_sum().over(keys).alias("rk:hi"))
        totals = self.totals(retrieved=False)
        parts = []
        for k in cuts:
            inside = pl.min_horizontal(hi, k) - pl.min_horizontal(hi - pl.col(SIZE), k)
            first = blocks.group_by(keys).agg(
                inside.sum().cast(pl.Float64).alias("positive"),
                (pl.col(RELEVANT) * inside / pl.col(SIZE)).sum().alias("tp"),
            )
            parts.append(
                totals.join(first, on=keys, how="left", nulls_equal=True).with_columns(
                    pl.col("positive", "tp").fill_null(0.0), pl.lit(k).alias("k")
                )
            )
        return pl.concat(parts)


def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Null where there is nothing to divide by."""
    return pl.when(whole > 0).then(part / whole)
