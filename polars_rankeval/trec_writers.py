"""Write tables as TREC files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from polars_rankeval._typing import Source
from polars_rankeval.errors import RankEvalError
from polars_rankeval.sources import scan
from polars_rankeval.table import choice

_ORDERS = ("order", "doc")


def write_run(
    table: Source,
    path: str | Path,
    *,
    query: str = "query_id",
    doc: str = "doc_id",
    score: str = "score",
    tag: str = "run",
    ties: Literal["order", "doc"] = "doc",
) -> None:
    """Write the retrieved rows of a table as a TREC run: `query Q0 document rank score tag`.

    Scores are written so that they are read back as they were.

    Parameters
    ----------
    table
        Rows with the columns of `query`, `doc` and `score`; those without a score are left out.
    path
        File to write.
    query, doc, score
        Columns.
    tag
        Name of the run, the last field of each line.
    ties
        How tied rows are ranked: by `doc` descending, as trec_eval does, or in the `"order"` of the table.

    Raises
    ------
    RankEvalError
        For an id or a tag that is empty, starts with `#` or holds blanks, and for a NaN score.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars_rankeval as rk
    >>> table = {"query_id": [1, 1], "doc_id": ["a", "b"], "score": [0.25, 0.5]}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     rk.write_run(table, Path(directory) / "bm25.run", tag="bm25")
    ...     print((Path(directory) / "bm25.run").read_text(), end="")
    1 Q0 b 1 0.5 bm25
    1 Q0 a 2 0.25 bm25
    """
    choice("ties", ties, _ORDERS)
    _refuse_field(pl.DataFrame({"tag": [tag]}), "tag")
    rows = (
        scan(table).select(query, doc, score).drop_nulls(score).with_row_index("rk:row").collect()
    )
    _refuse_field(rows, query)
    _refuse_field(rows, doc)
    if rows[score].dtype.is_float() and rows[score].is_nan().any():
        msg = f"score column {score!r} is NaN in some rows: NaN has no place in a ranking; use null for rows that were not retrieved"
        raise RankEvalError(msg)
    by, descending = (doc, True) if ties == "doc" else ("rk:row", False)
    line = pl.format(
        "{} Q0 {} {} {} {}",
        query,
        doc,
        pl.int_range(1, pl.len() + 1).over(query),
        score,
        pl.lit(tag),
    )
    _write(rows.sort(query, score, by, descending=[False, True, descending]).select(line), path)


def write_qrels(
    table: Source,
    path: str | Path,
    *,
    query: str = "query_id",
    doc: str = "doc_id",
    label: str = "label",
) -> None:
    """Write the judged rows of a table as TREC qrels: `query 0 document label`.

    Parameters
    ----------
    table
        Rows with the columns of `query`, `doc` and `label`, whole numbers or Boolean; those without a label are left out.
    path
        File to write.
    query, doc, label
        Columns.

    Raises
    ------
    RankEvalError
        For an id that is empty, starts with `#` or holds blanks, and for labels that are no whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars_rankeval as rk
    >>> table = {"query_id": [1, 1], "doc_id": ["a", "b"], "label": [2, None]}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     rk.write_qrels(table, Path(directory) / "qrels.txt")
    ...     print((Path(directory) / "qrels.txt").read_text(), end="")
    1 0 a 2
    """
    rows = scan(table).select(query, doc, label).drop_nulls(label).collect()
    _refuse_field(rows, query)
    _refuse_field(rows, doc)
    numbers = rows[label].cast(pl.Int64, strict=False)
    if numbers.null_count() or not (numbers.cast(pl.Float64) == rows[label].cast(pl.Float64)).all():
        msg = f"label column {label!r} holds values that are no whole numbers, which is all that qrels can hold: round or scale them"
        raise RankEvalError(msg)
    line = pl.format("{} 0 {} {}", query, doc, numbers)
    _write(rows.select(line), path)


def _refuse_field(rows: pl.DataFrame, column: str) -> None:
    """A field of a line is some text without blanks."""
    text = pl.col(column).cast(pl.String)
    bad = rows.filter(text.is_null() | text.str.contains(r"^$|^#|\s|\x00"))
    if bad.height:
        msg = (
            f"column {column!r} has {bad.height} values that no field of a TREC file can hold, for example "
            f"{bad[column][0]!r}: a field is not empty, holds no blanks and does not start with #"
        )
        raise RankEvalError(msg)


def _write(lines: pl.DataFrame, path: str | Path) -> None:
    lines.write_csv(path, include_header=False, quote_style="never")
