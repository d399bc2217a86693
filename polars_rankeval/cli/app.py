"""The commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import App, CycloptsError, Parameter

import polars_rankeval as rk
from polars_rankeval._typing import Ties
from polars_rankeval.catalogue import entries, example
from polars_rankeval.cli import OK, TREC
from polars_rankeval.cli.explain import edges, explanation
from polars_rankeval.cli.inputs import QRELS, RUN, STDIN, open_source, row_count
from polars_rankeval.cli.options import (
    By,
    Digits,
    Doc,
    Label,
    Measures,
    NoRelevantOption,
    Output,
    Query,
    Score,
    Sources,
    Style,
    TiesOption,
)
from polars_rankeval.cli.output import WRITERS, deliver, save, show
from polars_rankeval.cli.work import animated, work
from polars_rankeval.errors import RankEvalError
from polars_rankeval.files import SVMLIGHT
from polars_rankeval.measures.names import Measure, parse_all

HELP = """Evaluate rankings: AP, MRR, nDCG and the rest, from a table of query, document, label and score.

A SOURCE is a file of Parquet, CSV, NDJSON, Arrow IPC or SVMlight, or several, a glob, a directory, a Delta or Iceberg table, also at s3:// and the like. The word sample is the table that comes with the package, and - is standard input."""

EXAMPLES = """Examples:

  rankeval evaluate sample -m AP -m nDCG@10 --by model
  rankeval ties sample -m AP --by model
  rankeval measures nDCG

Columns are query_id, doc_id, label and score unless options such as --query name others."""


def _shown_default(value: Any) -> str:
    """A default as it would be typed."""
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _examples(*commands: str) -> str:
    return "\n".join(["Examples:", "", *(f"  rankeval {command}" for command in commands)])


app = App(
    name="rankeval",
    help=HELP,
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version=rk.__version__,
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), show_default=_shown_default),
)

app.command(
    "polars_rankeval.cli.completion:command",
    name="--install-completion",
    help="Install shell completion for this application.",
)


def run(args: list[str]) -> int:
    """Parse and run a command line; mistakes are raised, with what to do."""
    # A lone hyphen would be taken for an option.
    args = [STDIN if arg == "-" else arg for arg in args]
    try:
        result = app(args, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        msg = f"{_sentence(str(error))}\nSee: {' '.join(['rankeval', *_command(args)])} --help"
        raise RankEvalError(msg) from error
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else OK
    return result if isinstance(result, int) else OK


@app.command(
    help_epilogue=_examples(
        "evaluate sample -m AP -m nDCG@10 --by model",
        "evaluate scored.csv --query qid --score bm25 --score dense -m AP@100",
        "evaluate 'scored/*.parquet' -m AP --per-query -o per_query.parquet",
    )
)
def evaluate(
    sources: Sources,
    /,
    *,
    measures: Measures = ("AP", "RR", "nDCG@10"),
    by: By = (),
    query: Query = ("query_id",),
    label: Label = "label",
    score: Score = ("score",),
    doc: Doc = "doc_id",
    ties: TiesOption = "block",
    no_relevant: NoRelevantOption = "zero",
    judged_only: Annotated[
        bool,
        Parameter(
            name="--judged-only",
            help="Drop rows that were not judged before ranking.",
            show_default=False,
        ),
    ] = False,
    weight: Annotated[
        str | None,
        Parameter(
            name="--weight",
            help="Column with the weight of the query in the mean.",
            show_default=False,
        ),
    ] = None,
    per_query: Annotated[
        bool,
        Parameter(
            name="--per-query", help="A row for each query instead of means.", show_default=False
        ),
    ] = False,
    contiguous: Annotated[
        bool,
        Parameter(
            name="--contiguous",
            help="The rows of each query stand together: work in constant memory.",
            show_default=False,
        ),
    ] = False,
    output: Output = None,
    format: Style = "table",
    digits: Digits = 4,
) -> int:
    """Mean of measures over the queries, or their values for each query."""
    if per_query and weight:
        msg = "--weight concerns the mean: it does not go with --per-query"
        raise RankEvalError(msg)
    asked = [str(m) for m in _parsed(measures)]
    table = open_source(sources, scores=score)
    options: dict[str, Any] = {
        "query": list(query),
        "doc": doc,
        "label": label,
        "score": list(score),
        "by": list(by),
        "ties": ties,
        "no_relevant": no_relevant,
        "judged_only": judged_only,
        "contiguous": contiguous,
    }
    with _columns_by_option(query=query, doc=doc, label=label, score=score, by=by, weight=weight):
        if per_query:
            plan = rk.per_query(table, *asked, **options)
        else:
            plan = rk.evaluate(table, *asked, weight=weight, **options)
    deliver(plan, output=output, style=format, digits=digits, what=_what(asked, sources))
    return OK


@app.command(
    help_epilogue=_examples("ties sample -m AP --by model", "ties sample --by model --blocks")
)
def ties(
    sources: Sources,
    /,
    *,
    measures: Measures = ("AP", "RR", "nDCG@10"),
    by: By = (),
    query: Query = ("query_id",),
    label: Label = "label",
    score: Annotated[str, Parameter(name="--score", help="Column to rank by.")] = "score",
    no_relevant: NoRelevantOption = "zero",
    blocks: Annotated[
        bool,
        Parameter(
            name="--blocks", help="List the blocks of tied rows instead.", show_default=False
        ),
    ] = False,
    output: Output = None,
    format: Style = "table",
    digits: Digits = 4,
) -> int:
    """How much of each number is decided by the order of tied rows.

    Prints the mean with tied rows in the worst, an average and the best order, and how far worst and best lie apart; then how many rows are tied.
    """
    asked = [str(m) for m in _parsed(measures)]
    table = open_source(sources, scores=[score])
    keys: dict[str, Any] = {"query": list(query), "label": label, "score": score, "by": list(by)}
    with _columns_by_option(query=query, label=label, score=[score], by=by):
        tied = rk.tie_blocks(table, **keys).filter(pl.col("size") > 1)
        policies: tuple[Ties, ...] = ("worst", "expected", "best")
        means = {
            policy: rk.evaluate(table, *asked, ties=policy, no_relevant=no_relevant, **keys)
            for policy in policies
        }
    what = _what(asked, sources)
    if blocks:
        deliver(tied, output=output, style=format, digits=digits, what=what)
        return OK
    long = [
        plan.unpivot(asked, index=list(by), variable_name="measure", value_name=policy)
        for policy, plan in means.items()
    ]
    on = [*by, "measure"]
    share = {"decided": pl.col("best") - pl.col("worst")}
    place = pl.col("measure").replace_strict(asked, range(len(asked)), return_dtype=pl.UInt32)
    plan = (
        long[0]
        .join(long[1], on=on, nulls_equal=True)
        .join(long[2], on=on, nulls_equal=True)
        .with_columns(**share)
        .sort(*by, place)
    )
    if output is not None or format != "table":
        deliver(plan, output=output, style=format, digits=digits, what=what)
        return OK
    summary = tied.select(
        pl.len().alias("blocks"), pl.col("size").sum(), pl.col("size").max().alias("largest")
    )
    retrieved = table.select(pl.col(score).count())
    frame, counts, rows = work(lambda _: pl.collect_all([plan, summary, retrieved]), what)
    show(frame, format, digits)
    print(_tied_rows(counts.row(0, named=True), rows.item()))
    return OK


def _tied_rows(counts: dict[str, int], rows: int) -> str:
    if not counts["blocks"]:
        return f"\nNo tied rows among {rows:,} retrieved."
    return (
        f"\n{counts['size']:,} of {rows:,} retrieved rows ({counts['size'] / rows:.1%}) are tied, "
        f"in {counts['blocks']:,} blocks of up to {counts['largest']:,} rows."
    )


@app.command(help_epilogue=_examples("measures", "measures nDCG 'P(rel=2)@5'"))
def measures(
    names: Annotated[
        list[str] | None,
        Parameter(
            name="NAME", help="Measures to explain, such as nDCG or P(rel=2)@5.", show_default=False
        ),
    ] = None,
    /,
    *,
    format: Style = "table",
) -> int:
    """The measures there are, or all about some of them."""
    if not names:
        frame = pl.DataFrame(
            {
                "measure": entry.usage,
                "what it is": entry.formula,
                "parameters": ", ".join(p for p, _, _ in entry.parameters),
                "also": ", ".join(entry.aliases),
            }
            for entry in entries()
        )
        show(frame.drop("parameters", "also") if format == "table" else frame, format, 4)
        if format == "table":
            print("\nParameters, other names and values at the edges: rankeval measures NAME")
        return OK
    asked = _parsed(names, example)
    if format != "table":
        show(pl.DataFrame([edges(m) for m in asked]), format, 4)
        return OK
    print("\n\n".join(explanation(measure) for measure in asked))
    return OK


@app.command(
    help_epilogue=_examples(
        "convert sample -o sample.csv",
        "convert train.svm.gz -o train.parquet",
        "convert scored.parquet -o scored.svm --feature bm25 --feature dense",
        "convert bm25.run -o bm25.parquet",
    )
)
def convert(
    sources: Sources,
    /,
    *,
    output: Annotated[
        Path,
        Parameter(
            name=["--output", "-o"],
            help="File to write: .parquet, .csv, .tsv, .ndjson, .arrow, .json, .md, .svm, .run or .qrels. It appears when it is complete.",
        ),
    ],
    query: Annotated[
        str, Parameter(name="--query", help="Column of the query, for .svm, .run and .qrels.")
    ] = "query_id",
    doc: Annotated[
        str, Parameter(name="--doc", help="Column of the document, for .svm, .run and .qrels.")
    ] = "doc_id",
    label: Annotated[
        str, Parameter(name="--label", help="Column of the judgement, for .svm and .qrels.")
    ] = "label",
    score: Annotated[str, Parameter(name="--score", help="Column to rank by, for .run.")] = "score",
    features: Annotated[
        tuple[str, ...],
        Parameter(
            name="--feature",
            help="Columns that become the features of .svm; all other numbers if not given.",
            show_default=False,
        ),
    ] = (),
) -> int:
    """Write a table in another format."""
    table = open_source(sources)
    columns: list[str] = []
    writer: Callable[[pl.LazyFrame, Path], object] | None = None
    if output.suffix.lower() in SVMLIGHT:
        schema = table.collect_schema()
        numbers = [c for c, t in schema.items() if t.is_numeric() and c not in (query, label)]
        columns = list(features) or numbers

        def svmlight(lf: pl.LazyFrame, path: Path) -> None:
            rk.write_svmlight(lf, path, features=columns, query=query, doc=doc, label=label)

        writer = svmlight
    elif output.suffix.lower() in (RUN, QRELS):
        kind = output.suffix.lower()
        value = {"score": score} if kind == RUN else {"label": label}
        asked = {"query": query, "doc": doc, **value}
        schema = table.collect_schema()
        missing = [(option, name) for option, name in asked.items() if name not in schema]
        for option, name in missing[:1]:
            msg = (
                f"column {name!r} not found; the table has {', '.join(map(repr, schema))}\n"
                f"Say which column it is: --{option} COLUMN"
            )
            raise RankEvalError(msg)
        writer = partial(WRITERS[kind], **asked)

    with _columns_by_option(query=[query], label=[label], feature=columns):
        save(table, output, digits=17, what=f"writing {output}", writer=writer)
    return OK


def _trec(args: Annotated[list[str], Parameter(name="ARGS", allow_leading_hyphen=True)], /) -> int:
    """Evaluate TREC files with trec_eval's options and output; see: rankeval trec -h."""
    from polars_rankeval.cli import main

    return main(["trec", *args])


if find_spec(TREC):
    app.command(_trec, name="trec")


@contextmanager
def _columns_by_option(**options: str | Sequence[str] | None) -> Iterator[None]:
    """Add to the error of a missing column the option that names the right one."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        message = str(error)
        for option, value in options.items():
            for name in [value] if isinstance(value, str) else value or []:
                if f"column {name!r} not found" in message:
                    msg = f"{message}\nSay which column it is: --{option} COLUMN"
                    raise RankEvalError(msg) from error
        raise
    except RankEvalError as error:
        if "has dtype String" not in str(error):
            raise
        cause = str(error).partition(": cast it")[0]
        msg = f"{cause}\nA column of a text file is of numbers if all its values are: is there a word among them, or no row at all?"
        raise RankEvalError(msg) from error


def _parsed(names: Sequence[str], read: Callable[[str], Measure] | None = None) -> list[Measure]:
    try:
        return parse_all(names if read is None else map(read, names))
    except RankEvalError as error:
        msg = f"{error}\nSee: rankeval measures"
        raise RankEvalError(msg) from error


def _what(measures: Sequence[str], sources: Sequence[str]) -> str:
    """What goes on, for those who wait."""
    names = ", ".join(measures[:3]) + (", ..." if len(measures) > 3 else "")
    where = sources[0] if len(sources) == 1 else f"{len(sources)} files"
    # Costs a look at the files, for those who see it only.
    rows = row_count(sources) if animated() else None
    return f"{names} of {where}{f', {rows:,} rows' if rows else ''}"


def _command(args: Sequence[str]) -> list[str]:
    return [args[0]] if args and not args[0].startswith("-") and args[0] in app else []


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
