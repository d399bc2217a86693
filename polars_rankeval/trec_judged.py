"""A part of a run matched with its judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl

from polars_rankeval.checks import CODE
from polars_rankeval.judge import judge
from polars_rankeval.ordered import FALLS, NEW_BLOCK, NEW_QUERY, OrderedRows, block_places, steps
from polars_rankeval.ranking import HI, KEY, N, Rows, sizes

#: Integer that stands for the topic.
TOPIC = "topic"
#: What a match tells of a row of the run: which one it is.
ROW = "rk:row"
PAIR = "rk:pair"
_COLUMNS = [TOPIC, "doc_id", "label", "score"]


@dataclass(frozen=True)
class JudgedPart:
    """The rows of the judged topics of a part, and their labels."""

    #: TOPIC and query_id
    topics: pl.DataFrame
    #: TOPIC, doc_id and score, topic by topic
    rows: pl.DataFrame
    #: ROW and label of those that are judged
    labels: pl.DataFrame
    #: TOPIC, doc_id and label of judgements of documents that are no rows
    missed: pl.DataFrame

    @staticmethod
    def of(topics: pl.DataFrame, table: pl.DataFrame) -> JudgedPart:
        """From TOPIC, doc_id, label and score of rows in any order, as `judge` gives them."""
        retrieved = pl.col("score").is_not_null()
        rows = table.filter(retrieved).sort(TOPIC, "score", descending=[False, True])
        labels = rows.with_row_index(ROW).filter(pl.col("label").is_not_null())
        return JudgedPart(
            topics,
            rows.select(TOPIC, "doc_id", "score"),
            labels.select(ROW, "label"),
            table.filter(retrieved.not_(), pl.col("label").is_not_null()).drop("score"),
        )

    @property
    def table(self) -> pl.DataFrame:
        """TOPIC, doc_id, label and score, as `judge` gives them."""
        label = pl.Series("label", [None], dtype=self.labels.schema["label"])
        label = label.new_from_index(0, self.rows.height)
        if self.labels.height:
            label = label.scatter(self.labels[ROW], self.labels["label"])
        return self._with_missed(self.rows.with_columns(label))

    def in_order(self) -> InOrder:
        """The rows that matter to an evaluation: of the others no more is needed than their number."""
        flags = self.rows.select(*steps(pl.col(TOPIC), pl.col("score")))
        if not flags[FALLS].all():
            return JudgedPart.of(self.topics, self.table).in_order()
        new = flags[NEW_BLOCK]
        # Rows that are judged, and those that tie with others, which may be judged.
        needed = [self.labels[ROW]]
        if not new.all():
            needed.append((new & new.shift(-1, fill_value=True)).not_().arg_true().alias(ROW))
        row = pl.concat(needed).unique().sort()
        starts = new.arg_true()
        block = starts.search_sorted(row, side="right").alias(NEW_BLOCK) - 1
        places = block_places(pl.col(NEW_BLOCK), starts, self.rows.height)
        rows = (
            self.rows[row]
            .with_columns(row)
            .hstack(block.to_frame().select(*places))
            .join(self.labels, on=ROW, how="left", maintain_order="left")
        )
        first = flags[NEW_QUERY].arg_true()
        size = sizes(first, self.rows.height).alias(N)
        return InOrder(
            self._with_missed(rows, KEY, HI),
            self.rows[TOPIC].gather(first).alias(CODE).to_frame().with_columns(size),
        )

    def _with_missed(self, rows: pl.DataFrame, *others: str) -> pl.DataFrame:
        rows = rows.select(*_COLUMNS, *others)
        return pl.concat([rows, self.missed], how="diagonal") if self.missed.height else rows


@dataclass(frozen=True)
class InOrder:
    """Some rows of parts of a run, and their places among all."""

    #: TOPIC, doc_id, label and score; the places where its tie block starts, KEY, and ends, HI
    table: pl.DataFrame
    #: CODE and N of all rows
    sizes: pl.DataFrame

    @staticmethod
    def joined(parts: Sequence[InOrder]) -> InOrder:
        """One after the other: the topics of a part are larger than those of the one before."""
        above = accumulate((part.sizes[N].sum() for part in parts), initial=0)
        tables = [
            part.table.with_columns(pl.col(KEY, HI) + pl.lit(rows, dtype=pl.get_index_type()))
            for part, rows in zip(parts, above, strict=False)
        ]
        return InOrder(pl.concat(tables), pl.concat(part.sizes for part in parts))

    def order(self, rows: Rows, query: pl.Expr | None) -> Rows:
        """The rows of the table as part of all."""
        assert query is not None
        return OrderedRows(
            **{**vars(rows), "frame": rows.frame.filter(rows.retrieved)},
            rest=rows.frame.filter(rows.retrieved.not_()).drop(KEY, HI),
            query=query,
            sizes=self.sizes,
        )


def judged_part(
    number: int, rows: pl.DataFrame, topics: pl.DataFrame, judged: pl.DataFrame
) -> JudgedPart:
    """Match a part with its judgements; `judged` has one row per query, with lists of documents and labels.

    Documents are matched by a hash of the pair, which is what makes this fast; matches are compared, and where a hash stands twice the pairs
    themselves are joined.
    """
    # Other numbers in each part, which rise from part to part; where a topic starts, the number does.
    first = number * 2**32
    starts = topics["len"].cum_sum().head(-1)
    numbers = pl.zeros(rows.height, pl.Int64, eager=True).scatter(starts, 1).cum_sum() + first
    coded = rows.select(numbers.set_sorted().alias(TOPIC), "doc_id", "score")
    known = topics.select((pl.int_range(pl.len()) + first).alias(TOPIC), "query_id").join(
        judged, on="query_id", maintain_order="left"
    )
    pair = (pl.col("doc_id").hash() ^ pl.col(TOPIC).reinterpret(dtype=pl.UInt64)).alias(PAIR)
    here = known.explode("doc_id", "label").select(TOPIC, "doc_id", "label", pair)
    known = known.select(TOPIC, "query_id")
    if known.height < topics.height:
        coded = coded.join(known, on=TOPIC, how="semi", maintain_order="left")
    pairs = coded.select(pl.col(TOPIC).set_sorted(), pair)
    # The row of each judged document: the few are looked for among the many, which stay where they are.
    found = pairs.select(PAIR).with_row_index(ROW).join(here, on=PAIR)
    # Topic by topic the hashes fit a cache: a fraction of the time of all at once.
    distinct = pairs.group_by(TOPIC).agg(pl.col(PAIR).n_unique())[PAIR].sum()
    if (
        distinct < pairs.height
        or here[PAIR].n_unique() < here.height
        or (coded["doc_id"].gather(found[ROW]) != found["doc_id"]).any()
        or (coded[TOPIC].gather(found[ROW]) != found[TOPIC]).any()
    ):
        return _exactly(rows, known, judged)
    missed = here.join(found, on=PAIR, how="anti").select(TOPIC, "doc_id", "label")
    return JudgedPart(known, coded, found.select(ROW, "label"), missed)


def _exactly(rows: pl.DataFrame, topics: pl.DataFrame, judged: pl.DataFrame) -> JudgedPart:
    """The same by the pairs themselves, which refuses those that come twice."""
    plan = judge(rows, judged.explode("doc_id", "label"), missing="drop")
    return JudgedPart.of(topics, plan.collect().join(topics, on="query_id").select(_COLUMNS))
