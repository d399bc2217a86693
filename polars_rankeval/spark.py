"""The same measures on Spark DataFrames: rows go to partitions by query, and each is evaluated as a contiguous stream.

Needs pyspark 4 on the driver, and this package on the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Unpack

import polars as pl
import pyarrow as pa
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from polars_rankeval._typing import Asked
from polars_rankeval.batches import Task, evaluated
from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import prepare, refuse_whole
from polars_rankeval.measures.names import Measure
from polars_rankeval.plan import QUERY_WEIGHT

#: A DataFrame of pyspark, of Spark Classic or Spark Connect.
SparkFrame = Any

#: Rows that are evaluated at a time: executors share their memory among tasks.
BATCH_ROWS = 500_000


def per_query(
    table: SparkFrame,
    *measures: str | Measure,
    batch_rows: int = BATCH_ROWS,
    partitions: int | None = None,
    **asked: Unpack[Asked],
) -> SparkFrame:
    """Compute measures of every query of a Spark DataFrame.

    Parameters
    ----------
    table
        A Spark DataFrame, in any order.
    measures, query, doc, label, score, by, no_relevant, judged_only
        As in `polars_rankeval.per_query`.
    ties
        As there, but for `"order"`: rows of Spark have no order.
    batch_rows
        Rows that a task evaluates at a time. A larger query is taken whole.
    partitions
        Number of partitions to shuffle to, `spark.sql.shuffle.partitions` and adaptive execution unless given.

    Returns
    -------
    Spark DataFrame
        Lazy: the rows and columns that `polars_rankeval.per_query` gives, in no order.

    Raises
    ------
    RankEvalError
        As there; what concerns the values fails the Spark job, whose error has the message.
    """
    task = _task(table, measures, **asked)
    return _queries(table, task, batch_rows, partitions)


def evaluate(
    table: SparkFrame,
    *measures: str | Measure,
    weight: str | None = None,
    batch_rows: int = BATCH_ROWS,
    partitions: int | None = None,
    **asked: Unpack[Asked],
) -> SparkFrame:
    """Compute the mean of measures over the queries of a Spark DataFrame, of all or of each group.

    Parameters
    ----------
    table, measures, query, doc, label, score, by, ties, no_relevant, judged_only, batch_rows, partitions
        As in `per_query`.
    weight
        As in `polars_rankeval.evaluate`.

    Returns
    -------
    Spark DataFrame
        Lazy: the rows and columns that `polars_rankeval.evaluate` gives, `queries` being a bigint.

    Raises
    ------
    RankEvalError
        As `per_query`.
    """
    task = _task(table, measures, weight, **asked)
    queries = _queries(table, task, batch_rows, partitions)
    sf = _functions(table)
    means = [
        sf.count(sf.lit(1)).alias("queries"),
        *(_mean(sf, str(m), weighted=weight is not None) for m in task.options.measures),
    ]
    groups = [_quoted(name) for name in task.schema if name in _groups(task)]
    if not groups:
        return queries.agg(*means)
    return queries.groupBy(*groups).agg(*means).orderBy(*groups)


def _functions(table: SparkFrame) -> Any:
    """The functions that make columns for this DataFrame: Spark Connect has its own.

    pyspark chooses by the environment, which need not know of a session that was made from the classes of Spark Connect.
    """
    if type(table).__module__.startswith("pyspark.sql.connect."):
        from pyspark.sql.connect import functions as of_connect

        return of_connect
    from pyspark.sql import functions

    return functions


def _quoted(name: str) -> str:
    """A column whose name may hold dots and the like, as `P(rel=0.5)@5` does."""
    return "`" + name.replace("`", "``") + "`"


def _groups(task: Task) -> list[str]:
    return [*task.columns.by, *(["score"] if len(task.columns.scores) > 1 else [])]


def _mean(sf: Any, name: str, *, weighted: bool) -> Any:
    """Mean that skips nulls; null if there is nothing to mean."""
    value = sf.col(_quoted(name))
    if not weighted:
        return sf.avg(value).alias(name)
    weight = sf.col(_quoted(QUERY_WEIGHT)).cast("double")
    total = sf.sum(sf.when(value.isNotNull(), weight))
    return sf.when(total > 0, sf.sum(value * weight) / total).alias(name)


def _task(
    table: SparkFrame,
    measures: tuple[str | Measure, ...],
    weight: str | None = None,
    **asked: Unpack[Asked],
) -> Task:
    """Check what is asked against the schema of the table, without running it."""
    if asked.get("ties") == "order":
        msg = "ties='order' needs rows that have an order, which those of Spark have not: use another policy, such as 'doc'"
        raise RankEvalError(msg)
    # No row is fetched, and an Arrow schema is what the executors will see.
    empty = pl.DataFrame(table.limit(0).toArrow())
    lazy, columns, options = prepare(empty, measures, weight=weight, **asked)
    refuse_whole(columns)
    return Task.of(lazy, columns, options)


def _queries(table: SparkFrame, task: Task, batch_rows: int, partitions: int | None) -> SparkFrame:
    """One row per query, from partitions that are sorted so that queries stand together."""
    if batch_rows < 1:
        msg = f"batch_rows={batch_rows} is not a number of rows: use at least 1, or leave it out"
        raise RankEvalError(msg)
    keys = [_quoted(name) for name in task.columns.keys]
    moved = table.select(*map(_quoted, task.reads))
    moved = moved.repartition(*keys) if partitions is None else moved.repartition(partitions, *keys)
    return moved.sortWithinPartitions(*keys).mapInArrow(
        _of_partition(task, batch_rows), _schema(table.schema, task)
    )


def _schema(table: StructType, task: Task) -> StructType:
    """The columns of the result in terms of Spark; keys and weight keep their types."""
    columns, weight = task.columns, task.options.weight
    fields = []
    for name in task.schema:
        if name in columns.keys:
            fields.append(StructField(name, table[name].dataType))
        elif name == QUERY_WEIGHT and weight is not None:
            fields.append(StructField(name, table[weight].dataType))
        else:
            dtype = StringType() if task.schema[name] == pl.String else DoubleType()
            fields.append(StructField(name, dtype))
    return StructType(fields)


def _of_partition(
    task: Task, batch_rows: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task of Spark does with the Arrow batches of its partition: a stream, of which a few batches are in memory."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # One at a time: a task of Spark has one core.
        for rows in evaluated(_grouped(batches, batch_rows), task, workers=1):
            yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()

    return run


def _grouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pl.DataFrame]:
    """Frames of at least so many rows: Spark sends ten thousand at a time."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pl.DataFrame(pa.Table.from_batches(held))
            held, count = [], 0
    if count:
        yield pl.DataFrame(pa.Table.from_batches(held))
