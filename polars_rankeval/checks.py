"""What the values of a table may be.

Offending rows are counted per query, in a pass that is needed anyway where queries are counted; the error is raised when the
plan runs, by a function that sees one row per query.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_rankeval.errors import RankEvalError
from polars_rankeval.table import WHOLE, Columns

ROWS, CODE = "rk:rows", "rk:code"


@dataclass(frozen=True)
class Check:
    """Which rows a table may not have, and what to say of them."""

    bad: pl.Expr
    #: "{rows}" and "{query}" are filled in
    message: str


def query_checks(query: list[str]) -> list[Check]:
    """Every row belongs to a query."""
    return [
        Check(
            pl.col(column).is_null(),
            f"query column {column!r} is null in {{rows}}: every row belongs to a query; "
            "fill the nulls or filter them out",
        )
        for column in query
    ]


def score_checks(score: str, dtype: pl.DataType) -> list[Check]:
    """NaN is refused; infinities are scores."""
    if not dtype.is_float():
        return []
    message = (
        f"score column {score!r} is NaN in {{rows}}, for example in query {{query}}: NaN has no place in a ranking; "
        "use null for rows that were not retrieved"
    )
    return [Check(pl.col(score).is_nan(), message)]


def label_checks(label: str, dtype: pl.DataType, max_label: float | None = None) -> list[Check]:
    """Labels are finite, and not above what ERR was told."""
    checks = []
    if dtype.is_float():
        message = (
            f"label column {label!r} is NaN or infinite in {{rows}}, for example in query {{query}}: "
            "use null for rows that were not judged"
        )
        checks.append(Check(pl.col(label).is_finite().not_(), message))
    if max_label is not None and dtype.is_numeric():
        message = (
            f"label column {label!r} is above max_label={max_label} in {{rows}}, for example in query {{query}}: "
            "give ERR the largest label there can be, as in ERR(max_label=5)"
        )
        checks.append(Check(pl.col(label) > max_label, message))
    return checks


def doc_checks(doc: str) -> list[Check]:
    """A document that breaks ties, or is looked for twice, has a name."""
    message = (
        f"document column {doc!r} is null in {{rows}}, for example in query {{query}}: "
        "a document that breaks ties needs a name; fill the nulls or filter them out"
    )
    return [Check(pl.col(doc).is_null(), message)]


def row_weight_checks(weight: str, dtype: pl.DataType) -> list[Check]:
    """A weight is a finite number of at least 0."""
    w = pl.col(weight)
    bad = w.is_null() | (w < 0)
    if dtype.is_float():
        bad |= w.is_finite().not_()
    message = (
        f"weight column {weight!r} is null, negative or not finite in {{rows}}, for example in query {{query}}: "
        "a weight is a number of at least 0"
    )
    return [Check(bad, message)]


def query_weight_checks(weight: str, dtype: pl.DataType, keys: list[str]) -> list[Check]:
    """A query has one weight."""
    w = pl.col(weight)
    return [
        *row_weight_checks(weight, dtype),
        Check(
            w.min().over(keys) != w.max().over(keys),
            f"weight column {weight!r} is not the same in all rows of the query in {{rows}}, for example in query {{query}}: "
            "the weight belongs to the query, as pl.len().over(query) does",
        ),
    ]


def refuse(
    table: pl.LazyFrame, keys: list[str], checks: list[Check], schema: pl.Schema
) -> pl.LazyFrame:
    """No rows, of this schema; the plan raises when it runs if `table` has bad rows.

    Columns are counted whole, which costs next to nothing; the error needs the counts, hence a function in the plan, which sees one row.
    """
    query = pl.struct(keys)
    counts = table.select(
        column
        for i, check in enumerate(checks)
        for column in (
            check.bad.sum().alias(f"rows{i}"),
            query.filter(check.bad).first().alias(f"query{i}"),
        )
    )

    def run(frame: pl.DataFrame) -> pl.DataFrame:
        for i, check in enumerate(checks):
            count = frame[f"rows{i}"][0]
            if count:
                bad = frame.select(pl.col(f"query{i}").struct.unnest())
                msg = check.message.format(rows=plural(count, "row"), query=example(bad, keys))
                raise RankEvalError(msg)
        return pl.DataFrame(schema=schema)

    return counts.map_batches(run, schema=schema, streamable=False)


def refuse_shared_codes(queries: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    """Pass `queries`, unless two of them have one CODE."""

    def run(frame: pl.DataFrame) -> pl.DataFrame:
        if frame[CODE].n_unique() != frame.height:
            msg = (
                f"two values of the key {keys} share a 64-bit hash, by a chance of one in millions: "
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


def refuse_duplicates(table: pl.LazyFrame, columns: Columns, schema: pl.Schema) -> pl.LazyFrame:
    """No rows, of this schema; the plan raises when it runs if a document stands twice in a query."""

    def run(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height:
            first = frame.head(1)
            msg = (
                f"{plural(frame.height, 'pair')} of query and document in {plural(int(frame[ROWS].sum()), 'row')} of column "
                f"{columns.doc!r}, for example document {first[columns.doc][0]!r} of query {example(first, columns.keys)}: "
                "a document stands once in a ranking; keep one row of each"
            )
            raise RankEvalError(msg)
        return pl.DataFrame(schema=schema)

    return duplicates(table, columns).map_batches(run, schema=schema, streamable=False)


def guarded(table: pl.LazyFrame, *refusals: pl.LazyFrame) -> pl.LazyFrame:
    """`table`, whose plan runs the refusals too: rows that never come tie them to it, before its own, so that head() cannot do without."""
    return pl.concat([*refusals, table])


def example(frame: pl.DataFrame, keys: list[str]) -> str:
    """The key of the first row, in words."""
    if keys == [WHOLE]:
        return "None (the whole table)"
    values = frame.select(keys).row(0)
    if len(keys) == 1:
        return repr(values[0])
    return ", ".join(f"{key}={value!r}" for key, value in zip(keys, values, strict=True))


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count and its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"
