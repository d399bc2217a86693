"""The options that commands share: one name, one meaning, one line of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from polars_rankeval._typing import NoRelevant, Ties
from polars_rankeval.cli.output import Format

Sources = Annotated[
    list[str],
    Parameter(
        name="SOURCE", help="Files, a glob, a directory or table, - for standard input, or sample."
    ),
]
Measures = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--measure", "-m"],
        help="A measure, such as nDCG@10; repeat it for several. See: rankeval measures",
    ),
]
Query = Annotated[
    tuple[str, ...],
    Parameter(name="--query", help="Column of the query; repeat it for a key of several."),
]
Doc = Annotated[str, Parameter(name="--doc", help="Column of the document, read by --ties doc.")]
Label = Annotated[
    str, Parameter(name="--label", help="Column of the judgement; empty for not judged.")
]
Score = Annotated[
    tuple[str, ...],
    Parameter(
        name="--score",
        help="Column to rank by, larger first, empty for not retrieved; repeat it to compare.",
    ),
]
By = Annotated[
    tuple[str, ...],
    Parameter(name="--by", help="Column of groups to tell apart; repeatable.", show_default=False),
]
TiesOption = Annotated[Ties, Parameter(name="--ties", help="What tied scores mean.")]
NoRelevantOption = Annotated[
    NoRelevant,
    Parameter(
        name="--no-relevant", help="Value for a query without relevant rows, where it is undefined."
    ),
]
Output = Annotated[
    Path | None,
    Parameter(
        name=["--output", "-o"],
        help="File to write: .parquet, .csv, .json, .md, .ndjson or .arrow. It appears when it is complete.",
        show_default=False,
    ),
]
Style = Annotated[Format, Parameter(name="--format", help="How to print.")]
Digits = Annotated[
    int,
    Parameter(
        name="--digits",
        validator=Number(gte=0, lte=17),
        help="Decimals in tables; csv and json have 12, other files have all.",
    ),
]
