"""Every measure, parameter and policy against the oracle, through `per_query`."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import TIES, Row
from panel import PANEL, PARAMETERS, Asked, asked, by_query, exact
from strategies import Table, tables
from ways import WAYS, differences

OPTIONS = st.fixed_dictionaries(
    {
        "no_relevant": st.sampled_from(["zero", "null", "one"]),
        "judged_only": st.booleans(),
    }
)


def agree(table: Table, measures: list[Asked], options: dict[str, Any], *ways: str) -> None:
    """The values of one call, in the ways named or in all, are those of the oracle."""
    unique = list({str(m): m for m in measures}.values())
    names = [str(m) for m in unique]
    expected = exact(table, unique, **options)
    for way in ways or WAYS:
        result = WAYS[way](
            table.to_frame(), lambda frame: frame.rankeval.per_query(*names, **options)
        )
        assert result.schema == {"query_id": pl.String, **dict.fromkeys(names, pl.Float64)}
        assert result["query_id"].to_list() == sorted(expected, key=str.encode)
        assert not differences(by_query(result), expected, names), way


@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=12)
@given(table=tables(), options=OPTIONS)
def test_all_in_one_call(ties: str, table: Table, options: dict[str, Any]) -> None:
    agree(table, PANEL, {"ties": ties, **options})


@pytest.mark.parametrize("name", PARAMETERS)
@settings(max_examples=25)
@given(table=tables(), data=st.data(), ties=st.sampled_from(TIES), options=OPTIONS)
def test_alone(
    name: str, table: Table, data: st.DataObject, ties: str, options: dict[str, Any]
) -> None:
    measure = data.draw(asked([name]))
    agree(table, [measure], {"ties": ties, **options}, data.draw(st.sampled_from(list(WAYS))))


@settings(max_examples=80)
@given(
    table=tables(),
    measures=st.lists(asked(), min_size=2, max_size=5),
    ties=st.sampled_from(TIES),
    options=OPTIONS,
    way=st.sampled_from(list(WAYS)),
)
def test_a_few_together(
    table: Table, measures: list[Asked], ties: str, options: dict[str, Any], way: str
) -> None:
    agree(table, measures, {"ties": ties, **options}, way)


@pytest.mark.parametrize("ties", TIES)
def test_longer_lists(ties: str) -> None:
    # Lists longer than the tables above, with blocks too large to list their orders.
    draw = random.Random(7)
    rows = [
        (
            f"q{query}",
            Row(
                draw.choices([None, -1, 0, 1, 2, 4], [2, 1, 9, 2, 1, 1])[0],
                draw.choice([None, *range(distinct)]),
                f"d{doc}",
            ),
        )
        for query, (length, distinct) in enumerate([(60, 5), (90, 90), (45, 1), (70, 20), (1, 1)])
        for doc in range(length)
    ]
    draw.shuffle(rows)
    table = Table(rows, pl.Int16(), pl.Int32(), pl.String())
    measures = [m for m in PANEL if m.params.get("rel") is None] + [Asked("AP", {"k": 40})]
    agree(table, measures, {"ties": ties})


@pytest.mark.parametrize("ties", TIES)
def test_nothing_retrieved_at_all(ties: str) -> None:
    rows = [("a", Row(2, None, "x")), ("a", Row(0, None, "y")), ("b", Row(None, None, "x"))]
    table = Table(rows, pl.Int8(), pl.Float32(), pl.String())
    for no_relevant in ("zero", "one", "null"):
        agree(table, PANEL, {"ties": ties, "no_relevant": no_relevant})


@pytest.mark.parametrize("ties", TIES)
def test_nothing_relevant_at_all(ties: str) -> None:
    rows = [
        (query, Row(label, score, doc))
        for query, label in [("not judged", None), ("judged", 0), ("pooled", -1)]
        for doc, score in [("x", 2.0), ("y", 2.0), ("z", 1.0), ("u", None)]
    ]
    table = Table(rows, pl.Int8(), pl.Float64(), pl.String())
    for no_relevant in ("zero", "one", "null"):
        agree(table, PANEL, {"ties": ties, "no_relevant": no_relevant})


@pytest.mark.parametrize("ties", TIES)
def test_judged_only_keeps_a_query_that_it_empties(ties: str) -> None:
    rows = [("a", Row(None, 2.0, "x")), ("a", Row(-1, 1.0, "y")), ("b", Row(1, 1.0, "x"))]
    table = Table(rows, pl.Int8(), pl.Float64(), pl.String())
    for no_relevant in ("zero", "one", "null"):
        agree(table, PANEL, {"ties": ties, "no_relevant": no_relevant, "judged_only": True})
