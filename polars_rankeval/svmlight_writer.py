"""Writing SVMlight ranking files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from polars_rankeval._typing import Source
from polars_rankeval.errors import RankEvalError
from polars_rankeval.sources import scan
from polars_rankeval.svmlight import LINE, unless
from polars_rankeval.table import Columns


def write_svmlight(
    table: Source,
    path: str | Path,
    *,
    features: Sequence[str] | Mapping[str, int] = ("score",),
    query: str = "query_id",
    doc: str = "doc_id",
    label: str = "label",
) -> None:
    """Write a table as SVMlight ranking file, row by row in its order.

    Parameters
    ----------
    table
        Anything that `rk.scan` takes. Tools that read the file want the rows of a query beside each other: sort first if they are not.
    path
        The file to write.
    features
        Columns that become features 1, 2, ..., or a mapping of columns to numbers.
    query, doc, label
        Columns. The query is an integer; the document, if the table has it, goes into the comment of the line.

    Raises
    ------
    RankEvalError
        For a query that is not an integer, and for nulls, which the format cannot hold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars_rankeval as rk
    >>> file = Path(tempfile.mkdtemp()) / "scored.svm"
    >>> rk.write_svmlight({"query_id": [7, 7], "doc_id": ["a", "b"], "label": [1, 0], "score": [0.5, 0.25]}, file)
    >>> print(file.read_text(), end="")
    1 qid:7 1:0.5 # docid = a
    0 qid:7 1:0.25 # docid = b
    """
    lazy = scan(table)
    schema = lazy.collect_schema()
    numbers = (
        dict(features)
        if isinstance(features, Mapping)
        else {name: i for i, name in enumerate(features, start=1)}
    )
    numbers = dict(sorted(numbers.items(), key=lambda item: item[1]))
    columns = Columns.of(schema, query=query, doc=doc, label=label, score=list(numbers), by=None)
    if not schema[query].is_integer():
        msg = (
            f"query column {query!r} has dtype {schema[query]}, but an SVMlight query is a whole number: make one, for example with "
            f"pl.col({query!r}).rank('dense')"
        )
        raise RankEvalError(msg)
    needed = [query, label, *columns.scores]
    parts = [
        pl.col(c).cast(pl.UInt8 if schema[c] == pl.Boolean else schema[c]).cast(pl.String)
        for c in needed
    ]
    form = " ".join(["{}", "qid:{}", *(f"{number}:{{}}" for number in numbers.values())])
    text = pl.format(form, parts[1], parts[0], *parts[2:])
    if doc in schema:
        name = pl.col(doc).cast(pl.String)
        breaks = name.str.contains(r"[\r\n]").fill_null(False)
        comment = (
            pl.when(name.is_not_null()).then(pl.format(" # docid = {}", name)).otherwise(pl.lit(""))
        )
        text = unless(
            breaks,
            lambda row: (
                f"document {row['doc']!r} has a line break in its name, where a line of the file would end"
            ),
            text + comment,
            pl.String,
            doc=name,
        )
    for column in needed:
        text = unless(pl.col(column).is_null(), _null_of(column), text, pl.String)
    lazy.select(text.alias(LINE)).sink_csv(path, include_header=False, quote_style="never")


def _null_of(column: str) -> Callable[[dict[str, Any]], str]:
    return lambda _: (
        f"column {column!r} has a null, for which an SVMlight file has no sign: fill the nulls or filter them out"
    )
