"""Reading SVMlight (LETOR) ranking files, as learning-to-rank tools keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from polars_rankeval.chunks import whole_table
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import require_content
from polars_rankeval.io_source import answered, needed

#: So many features are found one by one; for more, lines are taken apart once.
FEW = 8
#: Lines taken apart at a time.
LINES = 10_000

LINE, _NUMBER, _BODY, _COMMENT = "rk:line", "rk:number", "rk:body", "rk:comment"
_FEATURES = "rk:features"


def scan_svmlight(
    path: str | Path | Sequence[str | Path], *, features: Iterable[int] | Mapping[int, str] = ()
) -> pl.LazyFrame:
    r"""Scan ranking files of lines such as `2 qid:10 1:0.03 2:0.5 # docid = GX1`, as SVMlight, LETOR, LightGBM and XGBoost have them.

    Parameters
    ----------
    path
        A file or several, plain or compressed (`.gz`, `.zst`).
    features
        Numbers of the features to read, often the ones to rank by; each becomes a column `feature_25`, or the name that a mapping gives it.

    Returns
    -------
    LazyFrame
        `query_id` (Int64), `doc_id` (String: the docid of the comment, or all of it; null without one), `label` (Float64) and a Float64 column per
        feature, 0 where a line leaves it out, as the format has it. Nothing is read before the plan runs, and columns that are not used are
        not parsed.

    Raises
    ------
    RankEvalError
        If a file is missing or empty; when the plan runs, for a line that is not of this form, with its number.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars_rankeval as rk
    >>> file = Path(tempfile.mkdtemp()) / "train.svm"
    >>> _ = file.write_text("2 qid:1 1:0.5 3:0.25 # docid = GX1\n0 qid:1 1:0.75\n")
    >>> rk.scan_svmlight(file, features={1: "bm25", 3: "dense"}).collect()
    shape: (2, 5)
    ┌──────────┬────────┬───────┬──────┬───────┐
    │ query_id ┆ doc_id ┆ label ┆ bm25 ┆ dense │
    │ ---      ┆ ---    ┆ ---   ┆ ---  ┆ ---   │
    │ i64      ┆ str    ┆ f64   ┆ f64  ┆ f64   │
    ╞══════════╪════════╪═══════╪══════╪═══════╡
    │ 1        ┆ GX1    ┆ 2.0   ┆ 0.5  ┆ 0.25  │
    │ 1        ┆ null   ┆ 0.0   ┆ 0.75 ┆ 0.0   │
    └──────────┴────────┴───────┴──────┴───────┘
    """
    paths = [str(path)] if isinstance(path, str | Path) else [str(p) for p in path]
    if not paths:
        msg = "name at least one file"
        raise RankEvalError(msg)
    names = _feature_names(features)
    return pl.concat([_scan_file(path, names) for path in paths])


def svmlight_features(path: str | Path) -> list[int]:
    """The numbers of the features that a file has, ascending; reads it once."""
    numbers = pl.col(LINE).str.splitn("#", 2).struct.field("field_0").str.extract_all(r"\s\d+:")
    found = (
        pl.scan_lines(path, name=LINE, glob=False)
        .select(numbers.alias(_NUMBER))
        .explode(_NUMBER)
        .select(pl.col(_NUMBER).drop_nulls().unique().str.strip_chars(" \t:").cast(pl.Int64).sort())
    )
    return found.collect().to_series().to_list()


def _feature_names(features: Iterable[int] | Mapping[int, str]) -> dict[int, str]:
    names = (
        dict(features)
        if isinstance(features, Mapping)
        else {number: f"feature_{number}" for number in features}
    )
    for number in names:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            msg = f"a feature is named by its number in the file, got {number!r}"
            raise RankEvalError(msg)
    taken = ["query_id", "doc_id", "label"]
    for name in names.values():
        if name in taken:
            msg = f"two columns would be named {name!r}: give the features names of their own"
            raise RankEvalError(msg)
        taken.append(name)
    return names


def _scan_file(path: str, names: dict[int, str]) -> pl.LazyFrame:
    """The columns of a file; which of them are wanted is known when the plan runs, and decides how the lines are read."""
    if "://" not in path:
        require_content(path)
    schema = pl.Schema(
        {
            "query_id": pl.Int64(),
            "doc_id": pl.String(),
            "label": pl.Float64(),
            **dict.fromkeys(names.values(), pl.Float64()),
        }
    )

    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        wanted = needed(schema, with_columns, predicate)
        lines = pl.scan_lines(
            path, name=LINE, row_index_name=_NUMBER, row_index_offset=1, glob=False
        ).filter(pl.col(LINE).str.contains(r"^\s*[^\s#]"))
        lines = lines if n_rows is None else lines.head(n_rows)
        frames = (
            # The engine for data in memory: that of streams would take a few hundred lines at a time.
            _parsed(path, batch.lazy(), names, wanted).collect(engine="in-memory")
            for batch in whole_table(lines, LINES)
        )
        yield from answered(frames, with_columns, predicate)

    # A plan may use its table in several places: all of them share one parsing.
    return register_io_source(read, schema=schema, is_pure=True).cache()


def _parsed(
    path: str, lines: pl.LazyFrame, names: dict[int, str], wanted: set[str]
) -> pl.LazyFrame:
    """The columns that are wanted, of some lines of a file."""
    names = {number: name for number, name in names.items() if name in wanted}
    line = pl.col(LINE)
    # Cut at the comment first: then a feature is found by its text alone, which is far faster than a pattern from the start of the line.
    cut = line.str.splitn("#", 2).struct.rename_fields([_BODY, _COMMENT]).struct.unnest()
    body, comment = pl.col(_BODY), pl.col(_COMMENT).str.strip_chars()
    docid = comment.str.extract(r"^docid\s*[=:]\s*(\S+)")

    def value(
        before: str, dtype: type[pl.DataType], form: str, absent: float | None = None
    ) -> pl.Expr:
        text = body.str.extract(before + r"(\S*)")
        parsed = text.cast(dtype, strict=False)
        bad = parsed.is_null() if absent is None else parsed.is_null() & text.is_not_null()

        def problem(row: dict[str, Any]) -> str:
            return _not_of_the_form(path, row, form)

        parsed = parsed if absent is None else parsed.fill_null(absent)
        return unless(bad, problem, parsed, dtype, number=pl.col(_NUMBER), line=line)

    form = "`<label> qid:<whole number> <feature>:<value> ...`"
    columns = {
        "query_id": value(r"^\s*\S+\s+qid:", pl.Int64, form),
        "doc_id": pl.coalesce(docid, pl.when(comment != "").then(comment)),
        "label": value(r"^\s*", pl.Float64, form),
    }
    chosen = [expr.alias(name) for name, expr in columns.items() if name in wanted]
    if len(names) > FEW:
        chosen.append(_many(path, names).alias(_FEATURES))
    else:
        chosen += [
            value(rf"[ \t]{number}:", pl.Float64, f"`{number}:<number>`", 0.0).alias(name)
            for number, name in names.items()
        ]
    plan = lines.with_columns(cut).select(chosen)
    return plan.unnest(_FEATURES) if len(names) > FEW else plan


def _not_of_the_form(path: str, row: dict[str, Any], form: str) -> str:
    return f"{path}, line {row['number']}: not of the form {form}: {row['line'][:80]}"


def _many(path: str, names: dict[int, str]) -> pl.Expr:
    """Features as a struct: all pairs of all lines are put at their places in one flat array, which is zero elsewhere."""

    def read(rows: pl.Series) -> pl.Series:
        body = rows.struct.field("body").str.replace_all("\t", " ", literal=True)
        words = body.str.strip_chars().str.split(" ")
        row = pl.int_range(len(rows), eager=True).repeat_by(words.list.len()).explode()
        pair = words.explode().str.splitn(":", 2).struct
        pairs = pl.DataFrame(
            {
                "row": row,
                # First the text: 01 is no 1.
                "column": pair.field("field_0").replace_strict(
                    list(map(str, names)),
                    range(len(names)),
                    default=None,
                    return_dtype=pl.Int64,
                ),
                "text": pair.field("field_1"),
            }
        ).filter(pl.col("column").is_not_null() & pl.col("text").is_not_null())
        value = pairs["text"].cast(pl.Float64, strict=False)
        if value.has_nulls():
            bad = pairs.filter(value.is_null()).row(0, named=True)
            form = f"`{list(names)[bad['column']]}:<number>`"
            raise RankEvalError(_not_of_the_form(path, rows[bad["row"]], form))
        place = pairs["row"] * len(names) + pairs["column"]
        flat = pl.repeat(0.0, len(rows) * len(names), eager=True)
        # From the end: of a feature that a line has twice the first counts, as in a search.
        flat = flat.scatter(place.reverse(), value.reverse())
        return pl.DataFrame(
            {name: flat.gather_every(len(names), i) for i, name in enumerate(names.values())}
        ).to_struct()

    return pl.struct(body=_BODY, number=_NUMBER, line=LINE).map_batches(
        read,
        return_dtype=pl.Struct(dict.fromkeys(names.values(), pl.Float64)),
        is_elementwise=True,
    )


def unless(
    bad: pl.Expr,
    problem: Callable[[dict[str, Any]], str],
    value: pl.Expr,
    dtype: Any,
    **details: pl.Expr,
) -> pl.Expr:
    """The value; the plan raises with the problem of the first row that is bad, put in words with its details."""

    def run(rows: pl.Series) -> pl.Series:
        first = rows.filter(rows.struct.field("bad")).head(1).to_list()
        if first:
            raise RankEvalError(problem(first[0]))
        return rows.struct.field("value")

    named = [expr.alias(name) for name, expr in details.items()]
    row = pl.struct(value.alias("value"), bad.alias("bad"), *named)
    return row.map_batches(run, return_dtype=dtype, is_elementwise=True)
