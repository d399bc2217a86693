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
from polars_rankeval.trec_batches import TOPIC

#: What a match tells of a row of the run: which one it is.
ROW = "rk:row"
PAIR = "rk:pair"
_SAME = "rk:same"
_COLUMNS = [TOPIC, "doc_id", "label", "score"]


@dataclass(frozen=True)
class JudgedPart:
    """The rows of the judged topics of a part, and their labels."""

    #: TOPIC and query_id
    topics: pl.DataFrame
    #: TOPIC, doc_id and score of each, topic by topic
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
        label = self._label(self.rows.height, self.labels[ROW])
        return self._with_missed(self.rows.with_columns(label).select(_COLUMNS))

    def in_order(self) -> InOrder:
        """The rows that matter to an evaluation: of the others no more is needed than their number."""
        flags = self.rows.select(*steps(pl.col(TOPIC), pl.col("score")))
        if not flags[FALLS].all():
            return JudgedPart.of(self.topics, self.table).in_order()
        new = flags[NEW_BLOCK]
        # Rows that are judged, and those that tie with others, which may be judged.
        row = self.labels[ROW]
        if not new.all():
            alone = new & new.shift(-1, fill_value=True)
            row = pl.concat([row, alone.not_().arg_true().alias(ROW)]).unique()
        row = row.sort()
        starts = new.arg_true()
        block = starts.search_sorted(row, side="right").alias(NEW_BLOCK) - 1
        rows = (
            self.rows[row]
            .lazy()
            # A copy of the documents: what is picked from a column of strings keeps the text of all of them.
            .with_columns(
                pl.col("doc_id") + "",
                self._label(row.len(), row.search_sorted(self.labels[ROW])),
                block,
            )
            .with_columns(*block_places(pl.col(NEW_BLOCK), starts, self.rows.height))
            .select(*_COLUMNS, KEY, HI)
        )
        first = flags[NEW_QUERY].arg_true()
        size = sizes(first, self.rows.height).alias(N)
        return InOrder(
            self._with_missed(_now(rows)),
            pl.DataFrame([self.rows[TOPIC].gather(first).alias(CODE), size]),
        )

    def _label(self, rows: int, at: pl.Series) -> pl.Series:
        """The labels at their places among so many rows."""
        none = pl.repeat(None, rows, dtype=self.labels.schema["label"], eager=True)
        return none.alias("label").scatter(at, self.labels["label"])

    def _with_missed(self, rows: pl.DataFrame) -> pl.DataFrame:
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


def judged_part(rows: pl.DataFrame, topics: pl.DataFrame, judged: pl.DataFrame) -> JudgedPart:
    """Match a part, as `numbered` gives it, with its judgements; `judged` has one row per query, with lists of documents and labels.

    Documents are matched by a hash of the pair, which is what makes this fast; matches are compared, and where a hash stands twice the pairs
    themselves are joined.
    """
    pair = (pl.col("doc_id").hash() ^ pl.col(TOPIC).reinterpret(dtype=pl.UInt64)).alias(PAIR)
    coded = rows.select(TOPIC, "doc_id", "score", pair)
    known = topics.join(judged, on="query_id", maintain_order="left")
    here = _now(known.lazy().explode("doc_id", "label").with_columns(pair))
    known = known.select(TOPIC, "query_id")
    if known.height < topics.height:
        coded = coded.join(known, on=TOPIC, how="semi", maintain_order="left")
    # The row of each judged document: the few are looked for among the many, which stay where they are.
    same = pl.all_horizontal(pl.col(name) == pl.col(f"{name}_right") for name in (TOPIC, "doc_id"))
    found = _now(
        coded.lazy()
        .with_row_index(ROW)
        .join(here.lazy(), on=PAIR)
        .select(ROW, "label", PAIR, same.alias(_SAME))
    )
    # Topic by topic the hashes fit a cache: a fraction of the time of all at once.
    distinct = coded.group_by(TOPIC).agg(pl.col(PAIR).n_unique())[PAIR].sum()
    if distinct < coded.height or here[PAIR].n_unique() < here.height or not found[_SAME].all():
        return _exactly(rows, known, judged)
    missed = here.lazy().join(found.lazy(), on=PAIR, how="anti")
    return JudgedPart(
        known,
        coded,
        found.select(ROW, "label"),
        _now(missed.select(TOPIC, "doc_id", "label")),
    )


def _exactly(rows: pl.DataFrame, topics: pl.DataFrame, judged: pl.DataFrame) -> JudgedPart:
    """The same by the pairs themselves, which refuses those that come twice."""
    plan = judge(rows.drop(TOPIC), judged.explode("doc_id", "label"), missing="drop")
    return JudgedPart.of(topics, plan.collect().join(topics, on="query_id").select(_COLUMNS))


def _now(plan: pl.LazyFrame) -> pl.DataFrame:
    """Several steps as one plan: each that is a plan of its own takes as long as thousands of rows."""
    return plan.collect(engine="in-memory")
