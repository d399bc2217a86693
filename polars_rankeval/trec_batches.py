"""A run in parts of whole topics, each joined with its judgements: what makes a long run fit a small memory.

Runs are written topic by topic, and mostly with one blank between fields. Both are seen while reading, and where they do not hold the
run is read line by line, or in one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from polars_rankeval.judge import judge
from polars_rankeval.trec import scan_run

#: Rows of a part, unless a topic has more.
ROWS = 600_000
#: Integer that stands for the topic within a part.
TOPIC = "topic"

_WANTED = ["query_id", "doc_id", "score"]
_FIELDS: dict[str, type[pl.DataType]] = {
    "query_id": pl.String,
    "rk:iteration": pl.String,
    "doc_id": pl.String,
    "rk:rank": pl.String,
    "score": pl.Float64,
    "rk:tag": pl.String,
}


class ScatteredError(Exception):
    """A topic stands in several places."""


class _IrregularError(Exception):
    """A file that is not one blank between six fields on each line."""


def parts(run: str | bytes) -> Iterator[pl.DataFrame]:
    """Yield the rows of a run in parts that hold topics whole, or all in one part if topics are scattered.

    A caller who keeps what it made of the parts drops it when a part comes that is flagged by `ScatteredError`; the run is then to be read
    by `whole`.
    """
    seen: set[str] = set()
    carried: pl.DataFrame | None = None
    for batch in _batches(run):
        rows = batch if carried is None else pl.concat([carried, batch])
        last = rows["query_id"][-1]
        size = int((rows["query_id"] == last).sum())
        carried, complete = rows.tail(size), rows.head(rows.height - size)
        if carried["query_id"].n_unique() > 1:
            raise ScatteredError
        if complete.height:
            _remember(seen, complete)
            yield complete
    if carried is not None:
        _remember(seen, carried)
        yield carried


def whole(run: str | bytes) -> pl.DataFrame:
    """All rows of a run, its topics together."""
    return scan_run(run).collect().sort("query_id", maintain_order=True)


def _remember(seen: set[str], rows: pl.DataFrame) -> None:
    """Note the topics of a part, which no other part may have."""
    topics = rows["query_id"].rle().struct.field("value").to_list()
    before = len(seen)
    seen.update(topics)
    if len(seen) - before < len(topics):
        raise ScatteredError


def _batches(run: str | bytes) -> Iterator[pl.DataFrame]:
    """Rows of a run in the order of its lines."""
    read = 0
    if isinstance(run, str) and _may_be_regular(run):
        try:
            for batch in _regular_batches(run):
                yield batch
                read += batch.height
        except _IrregularError:
            pass
        else:
            return
    # What was read before is known to be right, and is not read again: the rows of a file have one order.
    rows = scan_run(run).slice(read) if read else scan_run(run)
    yield from rows.collect_batches(chunk_size=ROWS, maintain_order=True)


def _may_be_regular(run: str) -> bool:
    """Whether a file is plain text without what would end a field, or may not stand in one: a look that costs next to nothing."""
    if run.endswith((".gz", ".zst")) or not Path(run).is_file():
        return False
    with Path(run).open("rb") as file:
        while chunk := file.read(2**20):
            if any(byte in chunk for byte in (b"\t", b"\r", b"\0", b"\v", b"\f")):
                return False
            # Byte order marks and U+FFFD, which a line may not hold, all start so; what else does is rare.
            if not chunk.isascii() and b"\xef" in chunk:
                return False
    return True


def _regular_batches(run: str) -> Iterator[pl.DataFrame]:
    """Rows of a file of six fields with one blank between them, which a CSV reader splits in half the time."""
    records = pl.scan_csv(
        run, separator=" ", has_header=False, quote_char=None, schema=_FIELDS, glob=False
    )
    strings = [name for name, dtype in _FIELDS.items() if dtype == pl.String]
    irregular = (
        pl.any_horizontal(pl.col(strings).is_null(), pl.col(strings) == "")
        | pl.col("score").is_null()
        | pl.col("score").is_nan()
        | pl.col("query_id").str.starts_with("#")
    )
    rows = records.select(*_WANTED, irregular.alias("rk:irregular"))
    try:
        for batch in rows.collect_batches(chunk_size=ROWS, maintain_order=True):
            if batch["rk:irregular"].any():
                raise _IrregularError
            yield batch.drop("rk:irregular")
    except pl.exceptions.PolarsError as error:
        raise _IrregularError from error


def judged_part(rows: pl.DataFrame, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Join a part with its judgements, as `judge` does: TOPIC, doc_id, label and score; and the query of each TOPIC.

    Documents are matched by a hash of the pair, which is what makes this fast; matches are compared, and where a hash stands twice the pairs
    themselves are joined.
    """
    coded = rows.select(
        pl.col("query_id").rle_id().cast(pl.Int64).alias(TOPIC), "doc_id", "score", "query_id"
    )
    topics = coded.select(TOPIC, "query_id").filter(
        pl.col(TOPIC).ne_missing(pl.col(TOPIC).shift(1))
    )
    known = judged.select("query_id").unique()
    if topics.join(known, on="query_id", how="anti").height:
        topics = topics.join(known, on="query_id", how="semi", maintain_order="left")
        coded = coded.join(topics, on=TOPIC, how="semi", maintain_order="left")
    pair = (pl.col("doc_id").hash(0) ^ pl.col(TOPIC).hash(1)).alias("rk:pair")
    pairs = coded.select(pair).to_series()
    here = judged.join(topics, on="query_id").select(TOPIC, "doc_id", "label", pair)
    # The row of each judged document: the few are looked for among the many, which stay where they are.
    found = pairs.to_frame().with_row_index("rk:row").join(here, on="rk:pair")
    missed = here.join(found, on="rk:pair", how="anti")
    ordered = pairs.sort()
    if (
        (ordered == ordered.shift(1)).any()
        or here["rk:pair"].n_unique() < here.height
        or (coded["doc_id"].gather(found["rk:row"]) != found["doc_id"]).any()
    ):
        exact = judge(rows, judged, missing="drop").collect()
        return exact.join(topics, on="query_id").select(TOPIC, "doc_id", "label", "score"), topics
    label = pl.Series("label", [None], dtype=judged.schema["label"]).new_from_index(0, coded.height)
    if found.height:
        label = label.scatter(found["rk:row"], found["label"])
    score = pl.lit(None, dtype=rows.schema["score"]).alias("score")
    columns = [TOPIC, "doc_id", "label", "score"]
    table = coded.with_columns(label).select(columns)
    return pl.concat([table, missed.with_columns(score).select(columns)]), topics
