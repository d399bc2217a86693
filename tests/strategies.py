"""Small tables full of the cases that go wrong, for property tests.

Every query is built from its tie blocks, so that the number of orders stays small enough to list.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from oracle import Label, Row, Score

QUERIES = ("q1", "q10", "Q1", "é", "e\u0301", "文", "🦊", "", " q1", 'a"b,c\n')
DOCS = [
    f"{prefix}{i}" for i in (1, 2, 10) for prefix in ("d", "D", "é", "e\u0301", "ﬁ", "🦊", "", " ")
]

LABELS: dict[str, tuple[pl.DataType, list[Label]]] = {
    "int": (pl.Int64(), [0, 1, 2, 3, 4, -1, -2]),
    "int8": (pl.Int8(), [0, 1, 3, 4, -1]),
    "uint8": (pl.UInt8(), [0, 1, 2, 4]),
    "float": (pl.Float64(), [0.0, 1.0, 0.25, 1.5, 3.0, 4.0, -0.0, -0.5, -1.0]),
    "bool": (pl.Boolean(), [False, True]),
}

# Scores in groups: members of one group are the same score.
SCORES: dict[str, tuple[pl.DataType, list[tuple[Score, ...]]]] = {
    "int": (pl.Int64(), [(i,) for i in (0, 1, -1, 7)]),
    "big": (
        pl.Int64(),
        [(i,) for i in (2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63))],
    ),
    "uint64": (
        pl.UInt64(),
        [(i,) for i in (0, 2**53 + 1, 2**53, 2**63, 2**63 - 1, 2**64 - 1, 2**64 - 2)],
    ),
    "float": (
        pl.Float64(),
        [
            (0.0, -0.0),
            (1.0,),
            (-1.0,),
            (math.inf,),
            (-math.inf,),
            (5e-324,),
            (-5e-324,),
            (0.1,),
            (0.1 + 2**-56,),
        ],
    ),
    "float32": (
        pl.Float32(),
        [(0.0, -0.0), (0.5,), (-0.5,), (math.inf,), (-math.inf,), (0.5 + 2**-24,)],
    ),
    "decimal": (
        pl.Decimal(38, 2),
        [
            (Decimal(text),)
            for text in ("0.00", "-0.01", "0.01", "9007199254740993.01", "9007199254740993.02")
        ],
    ),
}


@dataclass(frozen=True)
class Table:
    """Rows of all queries in the order of the input, and the dtypes of their columns."""

    rows: list[tuple[str, Row]]
    label: pl.DataType
    score: pl.DataType
    doc: pl.DataType

    def by_query(self) -> dict[str, list[Row]]:
        """Rows of each query, queries in order of appearance."""
        queries: dict[str, list[Row]] = {}
        for query, row in self.rows:
            queries.setdefault(query, []).append(row)
        return queries

    def to_frame(self) -> pl.DataFrame:
        """Columns query_id, doc_id, label and score."""
        return pl.DataFrame(
            {
                "query_id": pl.Series([query for query, _ in self.rows], dtype=pl.String),
                "doc_id": pl.Series([row.doc for _, row in self.rows], dtype=self.doc),
                "label": pl.Series([row.label for _, row in self.rows], dtype=self.label),
                "score": pl.Series([row.score for _, row in self.rows], dtype=self.score),
            }
        )


def draw_query(
    draw: DrawFn, labels: Sequence[Label], scores: Sequence[tuple[Score, ...]], max_block: int
) -> list[tuple[Label, Score]]:
    """Labels and scores of one query of at least one row."""
    shape = draw(st.sampled_from(["any", "any", "any", "nothing relevant", "nothing retrieved"]))
    if shape == "nothing relevant":
        labels = [label for label in labels if label is None or label <= 0]
    label = st.sampled_from(labels)
    rows: list[tuple[Label, Score]] = []
    groups = st.lists(st.sampled_from(scores), min_size=1, max_size=3, unique=True)
    for group in [] if shape == "nothing retrieved" else draw(groups):
        block = st.lists(st.tuples(label, st.sampled_from(group)), min_size=1, max_size=max_block)
        rows += draw(block)
    unretrieved = draw(st.lists(label, min_size=0 if rows else 1, max_size=3))
    return rows + [(each, None) for each in unretrieved]


@st.composite
def tables(
    draw: DrawFn,
    *,
    labels: Sequence[str] = tuple(LABELS),
    scores: Sequence[str] = tuple(SCORES),
    docs: Sequence[str] = ("string", "int"),
    max_queries: int = 4,
    max_block: int = 5,
    contiguous: bool = False,
    nulls: bool = True,
) -> Table:
    """Tables of a few queries, interleaved unless ``contiguous``.

    ``labels``, ``scores`` and ``docs`` name the kinds of column to choose from. ``nulls=False``
    leaves out null labels, not null scores.
    """
    label_dtype, label_pool = LABELS[draw(st.sampled_from(labels))]
    score_dtype, score_pool = SCORES[draw(st.sampled_from(scores))]
    doc_kind = draw(st.sampled_from(docs))
    # The order is drawn as one seed: far cheaper to draw and to shrink than permutations.
    shuffle = random.Random(draw(st.integers(0, 2**16))).shuffle

    if nulls:
        label_pool = [*label_pool, None]
    rows: list[tuple[str, Row]] = []
    for query in draw(
        st.lists(st.sampled_from(QUERIES), min_size=1, max_size=max_queries, unique=True)
    ):
        drawn = draw_query(draw, label_pool, score_pool, max_block)
        doc_pool: list[Any] = list(DOCS) if doc_kind == "string" else list(range(-3, len(DOCS) - 3))
        shuffle(doc_pool)
        shuffle(drawn)
        rows += [
            (query, Row(*cells, doc))
            for cells, doc in zip(drawn, doc_pool[: len(drawn)], strict=True)
        ]
    if not contiguous:
        shuffle(rows)
    return Table(
        rows, label_dtype, score_dtype, pl.String() if doc_kind == "string" else pl.Int64()
    )


def rankings(**options: Any) -> SearchStrategy[list[Row]]:
    """The rows of one query; options as for ``tables``."""
    return tables(max_queries=1, **options).map(lambda table: [row for _, row in table.rows])
