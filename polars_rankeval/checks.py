"""What the values of a table may be.

Offending rows are counted per query, in a pass that is needed anyway where queries are counted; the error is raised when the
plan runs, by a function that sees one row per query.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval.errors import RankEvalError
from polars_rankeval.table import Columns

ROWS, CODE = "rk:rows", "rk:code"


@dataclass(frozen=True)
class Check:
    """A count of offending rows of a query, and what to say of it."""

    count: pl.Expr
    #: "{rows}" and "{query}" are filled in
    message: str


def score_check(score: str, dtype: pl.DataType) -> list[Check]:
    """NaN is refused; infinities are scores."""
    if not dtype.is_float():
        return []
    message = (
        f"score column {score!r} is NaN in {{rows}}, for example in query {{query}}: NaN has no place in a ranking; "
        "use null for rows that were not retrieved"
    )
    return [Check(pl.col(score).is_nan().sum(), message)]


def label_checks(label: str, dtype: pl.DataType, max_label: float | None = None) -> list[Check]:
    """Labels are finite, and not above what ERR was told."""
    checks = []
    if dtype.is_float():
        message = (
            f"label column {label!r} is NaN or infinite in {{rows}}, for example in query {{query}}: "
            "use null for rows that were not judged"
        )
        checks.append(Check(pl.col(label).is_finite().not_().sum(), message))
    if max_label is not None and dtype.is_numeric():
        message = (
            f"label column {label!r} is above max_label={max_label} in {{rows}}, for example in query {{query}}: "
            "give ERR the largest label there can be, as in ERR(max_label=5)"
        )
        checks.append(Check((pl.col(label) > max_label).sum(), message))
    return checks


def doc_check(doc: str) -> Check:
    """A document that breaks ties, or is looked for twice, has a name."""
    message = (
        f"document column {doc!r} is null in {{rows}}, for example in query {{query}}: "
        "fill the nulls, or choose another policy than ties='doc'"
    )
    return Check(pl.col(doc).null_count(), message)


def weight_check(weight: str, dtype: pl.DataType) -> Check:
    """A query has one weight."""
    w = pl.col(weight)
    wrong = (w.null_count() > 0) | (w.min() != w.max()) | (w.min() < 0)
    if dtype.is_float():
        wrong |= w.is_finite().not_().any()
    message = (
        f"weight column {weight!r} is null, negative, not finite or not the same in all rows of the query, in {{rows}}, "
        "for example in query {query}: the weight belongs to the query, as pl.len().over(query) does"
    )
    return Check(pl.when(wrong).then(pl.len()).otherwise(0), message)


def counted(checks: list[Check]) -> list[pl.Expr]:
    """Aggregations of the rows of a query that `raise_failed` reads."""
    return [
        pl.len().alias(ROWS),
        *(check.count.alias(f"rk:check:{i}") for i, check in enumerate(checks)),
    ]


def raise_failed(
    queries: pl.LazyFrame, columns: Columns, checks: list[Check], *, hashed: bool = False
) -> pl.LazyFrame:
    """Pass `queries`, which has the columns of `counted`, unless a check counted a row."""

    def run(frame: pl.DataFrame) -> pl.DataFrame:
        for column in columns.query:
            null = frame.filter(pl.col(column).is_null())
            if null.height:
                msg = (
                    f"query column {column!r} is null in {plural(null[ROWS].sum(), 'row')}: every row belongs to a query; "
                    "fill the nulls or filter them out"
                )
                raise RankEvalError(msg)
        for i, check in enumerate(checks):
            bad = frame.filter(pl.col(f"rk:check:{i}") > 0)
            if bad.height:
                rows = plural(bad[f"rk:check:{i}"].sum(), "row")
                msg = check.message.format(rows=rows, query=example(bad, columns.keys))
                raise RankEvalError(msg)
        if hashed and frame[CODE].n_unique() != frame.height:
            msg = (
                f"two values of the key {columns.keys} share a 64-bit hash, by a chance of one in millions: "
                "use an integer column for the query, such as pl.col(...).rank('dense')"
            )
            raise RankEvalError(msg)
        return frame

    return queries.map_batches(run, schema=queries.collect_schema(), streamable=False)


def raise_undefined(
    queries: pl.LazyFrame, columns: Columns, undefined: dict[str, str]
) -> pl.LazyFrame:
    """Pass `queries` unless a measure is undefined; `undefined` maps measures to the columns that tell."""

    def run(frame: pl.DataFrame) -> pl.DataFrame:
        for measure, column in undefined.items():
            bad = frame.filter(pl.col(column))
            if bad.height:
                msg = (
                    f"{measure} is undefined for {plural(bad.height, 'query', 'queries')} without relevant rows, for example query "
                    f"{example(bad, columns.keys)}: use no_relevant='zero', 'null' or 'one', or filter them out"
                )
                raise RankEvalError(msg)
        return frame

    return queries.map_batches(run, schema=queries.collect_schema(), streamable=False)


def duplicates(table: pl.LazyFrame, columns: Columns) -> pl.LazyFrame:
    """The (query, document) pairs that the table has more than once, and how often.

    Candidates are found by sorting one column of hashes, so that only they are grouped by their values.
    """
    pair = [*columns.keys, columns.doc]
    hashed = table.select(*pair, pl.struct(pair).hash().alias(CODE))
    again = hashed.select(pl.col(CODE).sort()).filter(pl.col(CODE) == pl.col(CODE).shift(1))
    return (
        hashed.join(again.unique(), on=CODE, how="semi")
        .group_by(pair)
        .agg(pl.len().alias(ROWS))
        .filter(pl.col(ROWS) > 1)
    )


def guarded_by_documents(table: pl.LazyFrame, of: pl.LazyFrame, columns: Columns) -> pl.LazyFrame:
    """`table`, whose plan raises when it runs if `of` has duplicate documents."""
    schema = table.collect_schema()

    def run(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height:
            first = frame.head(1)
            msg = (
                f"{plural(frame.height, 'pair')} of query and document in {plural(frame[ROWS].sum(), 'row')} of column "
                f"{columns.doc!r}, for example document {first[columns.doc][0]!r} of query {example(first, columns.keys)}: "
                "a document stands once in a ranking; keep one row of each"
            )
            raise RankEvalError(msg)
        return pl.DataFrame(schema=schema)

    return _guarded(table, duplicates(of, columns).map_batches(run, schema=schema, streamable=False))


def guarded_by_values(table: pl.LazyFrame, columns: Columns, checks: list[Check]) -> pl.LazyFrame:
    """`table`, whose plan raises when it runs if a check fails."""
    schema = table.collect_schema()
    queries = raise_failed(table.group_by(columns.keys).agg(counted(checks)), columns, checks)
    nothing = queries.map_batches(
        lambda _: pl.DataFrame(schema=schema), schema=schema, streamable=False
    )
    return _guarded(table, nothing)


def _guarded(table: pl.LazyFrame, nothing: pl.LazyFrame) -> pl.LazyFrame:
    # A plan has no statement "run this too": rows that never come tie the check to the table.
    return pl.concat([table, nothing])


def example(frame: pl.DataFrame, keys: list[str]) -> str:
    """The key of the first row, in words."""
    values = frame.select(keys).row(0)
    if len(keys) == 1:
        return repr(values[0])
    return ", ".join(f"{key}={value!r}" for key, value in zip(keys, values, strict=True))


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count and its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"
