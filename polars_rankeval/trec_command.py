"""`rankeval trec`: trec_eval's options, and its output line for line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from polars_rankeval.checks import guarded, plural, refuse_duplicates
from polars_rankeval.errors import RankEvalError
from polars_rankeval.evaluation import per_query
from polars_rankeval.plan import Options, per_query_plan
from polars_rankeval.table import Columns
from polars_rankeval.trec import last_tag
from polars_rankeval.trec_batches import TOPIC, Run, ScatteredError, judgements, numbered
from polars_rankeval.trec_judged import InOrder, JudgedPart, judged_part
from polars_rankeval.trec_lines import may_have_comments, skipped_lines
from polars_rankeval.trec_output import NICKNAMES, Line, lines_asked, mean, topic_lines

#: What a topic that the run does not answer has of its own under version 9, which leaves everything else at 0.
_KEPT_9 = ("num_q", "num_rel")


def main(argv: Sequence[str]) -> int:
    """Run `rankeval trec` with these arguments; returns the exit code: 0, or 2 after a message on stderr.

    Parameters
    ----------
    argv
        Options, then the files of judgements and of the run (`-` for standard input), as trec_eval takes them.

    Returns
    -------
    int
        0, or 2 for arguments or files that cannot be read.
    """
    try:
        options = _parser().parse_args(list(argv))
    except SystemExit as stop:
        return 0 if stop.code in (0, None) else 2
    try:
        sys.stdout.writelines(_output(options))
        sys.stdout.flush()
    except BrokenPipeError:
        return 0
    except (RankEvalError, pl.exceptions.PolarsError, OSError) as error:
        print(f"rankeval trec: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rankeval trec",
        description="Evaluate a TREC run as trec_eval does, and print its lines.",
        epilog="Preference judgements (prefs_*) and several judges (qrels_jg) are not read.",
    )
    add = parser.add_argument
    add("-q", action="store_true", dest="topics", help="print the values of each topic too")
    add(
        "-c", action="store_true", dest="complete", help="average over all topics of the judgements"
    )
    add("-l", type=_positive, default=1, dest="level", metavar="N", help="least relevant label (1)")
    add("-M", type=_positive, dest="depth", metavar="N", help="documents to read of each topic")
    add(
        "-N",
        type=int,
        default=0,
        dest="collection",
        metavar="N",
        help="documents of the collection",
    )
    add("-J", action="store_true", dest="judged", help="drop documents without a judgement")
    add("-n", action="store_false", dest="summary", help="print no means")
    add(
        "-m",
        action="append",
        default=[],
        dest="measures",
        metavar="MEASURE",
        help=f"a measure, as in P.5,10, or {', '.join(NICKNAMES)} (official)",
    )
    add("--v9", action="store_true", help="compute as version 9 and pytrec_eval do")
    add("qrels", metavar="QRELS", help="file of judgements")
    add("run", metavar="RUN", help="file of the run, - for standard input")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = f"must be at least 1, got {text}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _output(options: argparse.Namespace) -> list[str]:
    """The lines to print."""
    lines = lines_asked(options)
    run = Run(sys.stdin.buffer.read() if options.run == "-" else options.run)
    with ThreadPoolExecutor(1) as beside:
        # While the first parts of the run are read.
        judged = beside.submit(_judgements, options.qrels)
        evaluation = _Evaluation(lambda: judged.result().lists, lines, options)
        try:
            found = list(run.parts(evaluation.part))
        except ScatteredError:
            found = [evaluation.part(*numbered(run.whole()))]
    values = evaluation.values([part for part in found if part is not None])
    if values is None:
        msg = f"no topic of {options.run} is judged in {options.qrels}"
        raise RankEvalError(msg)
    missing = judged.result().table.join(values, on="query_id", how="anti")
    if missing.height and options.complete:
        values = pl.concat([values, _unanswered(missing, lines, options, values.schema)])
    elif missing.height:
        count = plural(missing["query_id"].n_unique(), "topic")
        print(
            f"rankeval trec: {count} of {options.qrels} not in the run; -c counts them as 0",
            file=sys.stderr,
        )
    _tell_comments(options.qrels, options.qrels)
    if not run.regular:
        _tell_comments(run.source, options.run)
    values = values.sort("query_id")
    output = topic_lines(values, [x for x in lines if x.per_topic]) if options.topics else []
    if options.summary:
        output += [
            f"{line.name:<22}\tall\t{last_tag(run.source) if line.trec == 'runid' else mean(values, line)}\n"
            for line in lines
            if line.trec != "relstring"
        ]
    return output


def _tell_comments(source: str | bytes, name: str) -> None:
    """Say how many comments were skipped; trec_eval's older versions know none, and would refuse the file or count them."""
    if may_have_comments(source):
        comments = int(skipped_lines(source).collect()["comments"].sum())
        if comments:
            skipped = plural(comments, "comment line")
            print(f"rankeval trec: {skipped} of {name} skipped", file=sys.stderr)


@dataclass(frozen=True)
class _Judgements:
    #: all of them, each document once in a topic
    table: pl.DataFrame
    #: a row for each topic, with lists of documents and labels: a part finds those of its topics by their names alone
    lists: pl.DataFrame


def _judgements(qrels: str) -> _Judgements:
    table = judgements(qrels)
    lists = table.group_by("query_id").agg("doc_id", "label")
    documents = lists["doc_id"].list
    # Which document comes twice is looked for where one does.
    if (documents.n_unique() < documents.len()).any():
        columns = Columns(["query_id"], "doc_id", "label", [], [])
        guarded(table.lazy(), refuse_duplicates(table.lazy(), columns, table.schema)).collect()
    return _Judgements(table, lists)


@dataclass(frozen=True)
class _Part:
    """What is left of a part of a run, once it is matched with its judgements and ordered."""

    #: TOPIC, query_id and texts
    topics: pl.DataFrame
    rows: InOrder


class _Evaluation:
    """Parts of a run one by one, and then the values of all topics at once."""

    def __init__(
        self,
        judged: Callable[[], pl.DataFrame],
        lines: list[Line],
        options: argparse.Namespace,
    ) -> None:
        self._judged = judged
        self._options = options
        self._texts = [line for line in lines if line.trec == "relstring" and options.topics]
        measures = list(dict.fromkeys(x.measure for x in lines if x.measure is not None))
        # Rows that are to be left out are when a part is made.
        self._asked = Options(measures, "doc", "zero", judged_only=False, unique=True)

    def part(self, rows: pl.DataFrame, topics: pl.DataFrame) -> _Part | None:
        """Order the rows of a part, if one of its topics is judged."""
        options = self._options
        if options.v9:
            rows = rows.with_columns(pl.col("score").cast(pl.Float32))
        part = judged_part(rows, topics, self._judged())
        topics = part.topics
        if topics.is_empty():
            return None
        if self._texts or options.judged or options.depth is not None:
            table = part.table
            if options.depth is not None:
                table = _cut(table, options.depth)
            for line in self._texts:
                texts = _relevance_strings(table, line, judged_only=options.judged)
                topics = topics.join(texts, on=TOPIC, how="left")
            if options.judged:
                table = table.with_columns(pl.when(pl.col("label") >= 0).then("score"))
            part = JudgedPart.of(part.topics, table)
        return _Part(topics, part.in_order())

    def values(self, parts: list[_Part]) -> pl.DataFrame | None:
        """One row per judged topic of the run, with the columns that the lines show."""
        if not parts:
            return None
        topics = pl.concat(part.topics for part in parts)
        rows = InOrder.joined([part.rows for part in parts])
        columns = Columns([TOPIC], "doc_id", "label", ["score"], [])
        plan = per_query_plan(
            rows.table.lazy(), columns, "score", self._asked, at_hand="part", order=rows.order
        )
        return topics.join(plan.collect(engine="in-memory"), on=TOPIC).drop(TOPIC)


def _unanswered(
    judged: pl.DataFrame, lines: list[Line], options: argparse.Namespace, schema: pl.Schema
) -> pl.DataFrame:
    """The row of each topic that the run does not answer: 0 where a formula would make something of nothing."""
    measures = {str(line.measure): line for line in lines if line.measure is not None}
    table = judged.with_columns(pl.lit(None, dtype=pl.Float64).alias("score"))
    values = table.select("query_id").unique()
    if measures:
        asked = [line.measure for line in measures.values() if line.measure is not None]
        values = per_query(table, *asked, ties="doc", judged_only=options.judged)
    zero = [
        name
        for name, line in measures.items()
        if line.trec == "utility" or (options.v9 and line.trec not in _KEPT_9)
    ]
    values = values.with_columns(pl.lit(0.0).alias(name) for name in zero)
    texts = [name for name in schema if name not in values.columns]
    return values.with_columns(pl.lit("").alias(name) for name in texts).select(schema.names())


def _cut(table: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Only the first rows of each topic stay retrieved; all judgements stay."""
    return _in_order(table).with_columns(
        pl.when(pl.int_range(pl.len()).over(TOPIC) < depth).then("score").alias("score")
    )


def _in_order(table: pl.DataFrame) -> pl.DataFrame:
    return table.sort(TOPIC, "score", "doc_id", descending=[False, True, True], nulls_last=True)


def _relevance_strings(table: pl.DataFrame, line: Line, *, judged_only: bool) -> pl.DataFrame:
    """The labels of the first rows of each topic, a character each."""
    _, _, length = line.name.partition("_")
    try:
        first = int(float(length or 10))
    except (ValueError, OverflowError):
        msg = f"relstring takes a number of documents, got {length!r}"
        raise RankEvalError(msg) from None
    label = pl.col("label")
    character = (
        pl.when(label > 9)
        .then(pl.lit(">"))
        .when(label >= 0)
        .then(label.cast(pl.String))
        .when(label < 0)
        .then(pl.lit("."))
        .otherwise(pl.lit("-"))
    )
    rows = _in_order(table.filter(pl.col("score").is_not_null()))
    if judged_only:
        rows = rows.filter(label >= 0)
    return (
        rows.filter(pl.int_range(pl.len()).over(TOPIC) < first)
        .group_by(TOPIC)
        .agg(character.str.join("").alias(line.name))
    )
