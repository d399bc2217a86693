"""A slow, obvious, exact reference for the measures: one query at a time, in plain Python.

It shares no code with the package. What is rational is computed with fractions; logarithms are
floats, summed with ``math.fsum``. Where a measure is a mean over the orders of tied rows, the
orders are listed and averaged. Only when there are too many of them does a closed form take over,
and the tests check that both agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations, groupby, product
from typing import Any

Label = int | float | bool | None
Score = int | float | Decimal | None
Number = int | float | Fraction
Values = Sequence[Number]  # what a measure sees of the ranking, position by position
Blocks = Sequence[Values]  # the same, one sequence per tie block

TIES = ("block", "expected", "best", "worst", "order", "doc")


@dataclass(frozen=True)
class Row:
    """One row of one query."""

    label: Label
    score: Score
    doc: Any = None


@dataclass(frozen=True)
class Formula:
    """One measure of one query, before anything is said about ties."""

    value: Callable[[Row], Number]  # all that the measure sees of a row
    textbook: Callable[[Values], Number]  # its value for one strict order
    closed: Callable[[Blocks], Number]  # its mean over orders, without listing them
    thresholds: Callable[[Blocks], Number] | None = None  # at ends of tie blocks
    undefined: bool = False  # nothing relevant: `no_relevant` decides
    missing: bool = False  # null, whatever `no_relevant` says


def measure(
    rows: Sequence[Row],
    name: str,
    *,
    ties: str = "block",
    no_relevant: str = "zero",
    judged_only: bool = False,
    max_orders: int = 1000,
    **params: Any,
) -> float | None:
    """Value of one measure for one query; ``max_orders=0`` forces the closed forms."""
    if ties not in TIES:
        msg = f"unknown ties: {ties!r}"
        raise ValueError(msg)
    kept = [row for row in rows if is_judged(row) or not judged_only]
    formula = MEASURES[name](kept, **params)
    if formula.missing:
        return None
    if formula.undefined:
        return without_relevant(no_relevant)

    blocks = tie_blocks(kept)
    if ties not in ("block", "expected"):
        strict = chain.from_iterable(arrange(block, ties) for block in blocks)
        return float(formula.textbook([formula.value(row) for row in strict]))
    values = [[formula.value(row) for row in block] for block in blocks]
    if formula.thresholds and (ties == "block" or name == "IPrec"):
        return float(formula.thresholds(values))
    if count_orders(values) > max_orders:
        return float(formula.closed(values))
    return float(mean(formula.textbook(order) for order in orders(values)))


def without_relevant(no_relevant: str) -> float | None:
    """Value of a measure that nothing relevant makes undefined."""
    if no_relevant == "error":
        msg = "a query has no relevant row"
        raise ValueError(msg)
    return {"zero": 0.0, "one": 1.0, "null": None}[no_relevant]


# --- rows -----------------------------------------------------------------------------------------


def is_judged(row: Row) -> bool:
    return row.label is not None and row.label >= 0


def retrieved(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.score is not None]


def relevance(rows: Sequence[Row], rel: float | None) -> tuple[Callable[[Row], bool], int]:
    """Test of relevance, and R. A negative label is never relevant, however low ``rel`` is."""

    def relevant(row: Row) -> bool:
        if row.label is None or row.label < 0:
            return False
        return row.label > 0 if rel is None else row.label >= rel

    return relevant, sum(map(relevant, rows))


def gains(gain: str) -> Callable[[Row], Fraction]:
    if gain == "linear":
        return lambda row: Fraction(max(row.label or 0, 0))
    if gain == "exp2":
        return lambda row: Fraction(2 ** max(row.label or 0, 0)) - 1
    msg = f"unknown gain: {gain!r}"
    raise ValueError(msg)


# --- ties -----------------------------------------------------------------------------------------


def tie_blocks(rows: Sequence[Row]) -> list[list[Row]]:
    """Retrieved rows, best first: one list per distinct score, each in the order of the input."""

    def score(row: Row) -> Any:
        return row.score

    ranked = sorted(retrieved(rows), key=score, reverse=True)  # stable, in reverse too
    return [list(block) for _, block in groupby(ranked, key=score)]


def arrange(block: Sequence[Row], ties: str) -> list[Row]:
    """Tied rows in the one order that a strict policy gives them."""
    if ties == "order":
        return list(block)
    if ties == "doc":
        by_doc = {row.doc.encode() if isinstance(row.doc, str) else row.doc: row for row in block}
        if None in by_doc or len(by_doc) < len(block):
            msg = "null or duplicate documents among tied rows"
            raise ValueError(msg)
        return [by_doc[doc] for doc in sorted(by_doc, reverse=True)]
    # Nulls below all labels: that puts them last in "best" and first in "worst".
    return sorted(
        block, key=lambda row: (row.label is not None, row.label or 0), reverse=ties == "best"
    )


def count_orders(blocks: Blocks) -> int:
    """How many distinct orders ``orders`` would list."""
    counts = [Counter(block).values() for block in blocks]
    return math.prod(
        math.factorial(sum(count)) // math.prod(map(math.factorial, count)) for count in counts
    )


def orders(blocks: Blocks) -> Iterator[list[Number]]:
    """Every distinct order of the values inside tie blocks: all of them are equally likely."""
    for chosen in product(*(arrangements(Counter(block)) for block in blocks)):
        yield list(chain.from_iterable(chosen))


def arrangements(left: Counter[Number]) -> Iterator[tuple[Number, ...]]:
    if not left:
        yield ()
    for first in left:
        for rest in arrangements(left - Counter([first])):
            yield first, *rest


def spans(blocks: Blocks) -> Iterator[tuple[int, int, Values]]:
    """First position, last position and values of each block."""
    hi = 0
    for block in blocks:
        lo, hi = hi + 1, hi + len(block)
        yield lo, hi, block


# --- numbers --------------------------------------------------------------------------------------


def total(terms: Iterable[Number]) -> Number:
    """Exact sum of rationals; correctly rounded sum as soon as one term is a float."""
    kept = list(terms)
    if any(isinstance(term, float) for term in kept):
        return math.fsum(kept)
    return sum(kept, Fraction(0))


def mean(values: Iterable[Number]) -> Number:
    kept = list(values)
    return total(kept) / len(kept)


def decimal(parameter: float) -> Fraction:
    """A parameter as it was written: 0.1 is one tenth, so that a recall of 1/10 reaches it."""
    return Fraction(str(parameter))


def cut(k: int | None) -> Callable[[int], int]:
    """Weight 1 up to position k, 0 after it."""
    if k is not None and k < 1:
        msg = f"cutoff below 1: {k}"
        raise ValueError(msg)
    return lambda i: int(k is None or i <= k)


def reciprocal(k: int | None) -> Callable[[int], Fraction]:
    return lambda i: Fraction(cut(k)(i), i)


def log_discount(k: int | None) -> Callable[[int], float]:
    return lambda i: cut(k)(i) / math.log2(i + 1)


# --- family 1: position-weighted sums -------------------------------------------------------------


def weighted(
    value: Callable[[Row], Number], weight: Callable[[int], Number], over: Number = 1
) -> Formula:
    """Sum of value times weight, over a constant; undefined if that is 0."""

    def textbook(order: Values) -> Number:
        return total(v * weight(i) for i, v in enumerate(order, 1)) / over

    def closed(blocks: Blocks) -> Number:
        terms = (
            total(block) * mean(weight(i) for i in range(lo, hi + 1))
            for lo, hi, block in spans(blocks)
        )
        return total(terms) / over

    return Formula(value, textbook, closed, undefined=over == 0)


def precision(rows: Sequence[Row], k: int, rel: float | None = None) -> Formula:
    return weighted(relevance(rows, rel)[0], cut(k), over=k)


def recall(rows: Sequence[Row], k: int | None = None, rel: float | None = None) -> Formula:
    relevant, r = relevance(rows, rel)
    return weighted(relevant, cut(k), over=r)


def r_precision(rows: Sequence[Row], rel: float | None = None) -> Formula:
    return recall(rows, relevance(rows, rel)[1] or None, rel)


def f_score(rows: Sequence[Row], k: int, beta: float = 1, rel: float | None = None) -> Formula:
    relevant, r = relevance(rows, rel)
    hits, b2 = weighted(relevant, cut(k)), decimal(beta) ** 2

    def textbook(order: Values) -> Number:
        p, q = hits.textbook(order) / k, hits.textbook(order) / r
        return (1 + b2) * p * q / (b2 * p + q) if p else 0

    def closed(blocks: Blocks) -> Number:
        return (1 + b2) * hits.closed(blocks) / (b2 * r + k)

    return Formula(relevant, textbook, closed, undefined=r == 0)


def set_f(rows: Sequence[Row], beta: float = 1, rel: float | None = None) -> Formula:
    return f_score(rows, max(len(retrieved(rows)), 1), beta, rel)  # no hits at all if n = 0


def set_precision(rows: Sequence[Row], rel: float | None = None) -> Formula:
    return weighted(relevance(rows, rel)[0], cut(None), over=max(len(retrieved(rows)), 1))


def cg(rows: Sequence[Row], k: int | None = None, gain: str = "linear") -> Formula:
    return weighted(gains(gain), cut(k))


def dcg(rows: Sequence[Row], k: int | None = None, gain: str = "linear") -> Formula:
    return weighted(gains(gain), log_discount(k))


def ndcg(rows: Sequence[Row], k: int | None = None, gain: str = "linear") -> Formula:
    best_first = sorted(map(gains(gain), rows), reverse=True)  # retrieved or not
    return weighted(gains(gain), log_discount(k), over=dcg(rows, k, gain).textbook(best_first))


def rbp(
    rows: Sequence[Row], p: float = 0.8, k: int | None = None, rel: float | None = None
) -> Formula:
    (relevant, r), stay = relevance(rows, rel), decimal(p)
    formula = weighted(relevant, lambda i: (1 - stay) * stay ** (i - 1) * cut(k)(i))
    return replace(formula, undefined=r == 0)


def judged(rows: Sequence[Row], k: int | None = None) -> Formula:
    n = len(retrieved(rows))
    return weighted(is_judged, cut(k), over=max(n if k is None else min(k, n), 1))


def constant(number: int) -> Formula:
    return Formula(lambda _: 0, lambda _: number, lambda _: number)


# --- family 2: cascades ---------------------------------------------------------------------------


def cascade(
    satisfies: Callable[[Row], Number], worth: Callable[[int], Number], undefined: bool
) -> Formula:
    """A user reads down and stops at the first row that satisfies: what is that position worth?"""

    def textbook(order: Values) -> Number:
        reach, terms = Fraction(1), []
        for i, s in enumerate(order, 1):
            terms.append(reach * s * worth(i))
            reach *= 1 - Fraction(s)
        return total(terms)

    def closed(blocks: Blocks) -> Number:
        reach, terms = Fraction(1), []
        for lo, _, block in spans(blocks):
            t = survival(block)
            terms += [reach * (t[i] - t[i + 1]) * worth(lo + i) for i in range(len(block))]
            reach *= t[-1]
        return total(terms)

    return Formula(satisfies, textbook, closed, undefined=undefined)


def survival(block: Values) -> list[Fraction]:
    """T_i: expected product of (1 - s) over the first i rows of a block in random order."""
    t = [Fraction(1)]
    for m, s in enumerate(block):
        with_it = [Fraction(0)] + [i * (1 - Fraction(s)) * t[i - 1] for i in range(1, m + 2)]
        without = [(m + 1 - i) * t[i] for i in range(m + 1)] + [Fraction(0)]
        t = [(a + b) / (m + 1) for a, b in zip(with_it, without, strict=True)]
    return t


def reciprocal_rank(rows: Sequence[Row], k: int | None = None, rel: float | None = None) -> Formula:
    relevant, r = relevance(rows, rel)
    return cascade(relevant, reciprocal(k), undefined=r == 0)


def success(rows: Sequence[Row], k: int | None = None, rel: float | None = None) -> Formula:
    relevant, r = relevance(rows, rel)
    return cascade(relevant, cut(k), undefined=r == 0)


def err(
    rows: Sequence[Row], k: int | None = None, max_label: int = 4, discount: str | None = None
) -> Formula:
    if any(row.label is not None and row.label > max_label for row in rows):
        msg = f"a label is above max_label={max_label}"
        raise ValueError(msg)
    worth: dict[str | None, Callable[[int], Number]]
    worth = {None: reciprocal(k), "log2": log_discount(k)}
    gain, r = gains("exp2"), relevance(rows, None)[1]
    return cascade(lambda row: gain(row) / 2**max_label, worth[discount], undefined=r == 0)


# --- family 3: precision at relevant rows, and pairs ----------------------------------------------


def average_precision(
    rows: Sequence[Row], k: int | None = None, rel: float | None = None
) -> Formula:
    relevant, r = relevance(rows, rel)
    weight = reciprocal(k)

    def textbook(order: Values) -> Number:
        return total(sum(order[:i]) * weight(i) for i, v in enumerate(order, 1) if v) / r

    def closed(blocks: Blocks) -> Number:
        above, terms = 0, []
        for lo, _, block in spans(blocks):
            n, h = len(block), int(sum(block))
            for i in range(1, n + 1):
                tied = Fraction((i - 1) * (h - 1), n - 1) if n > 1 else 0
                terms.append(Fraction(h, n) * (above + 1 + tied) * weight(lo - 1 + i))
            above += h
        return total(terms) / r

    def thresholds(blocks: Blocks) -> Number:
        above, terms = Fraction(0), []
        for lo, hi, block in spans(blocks):
            end = hi if k is None else min(hi, k)
            hits = Fraction(int(sum(block)) * max(end - lo + 1, 0), len(block))  # k takes its share
            above += hits
            terms.append(hits * above / end)
        return total(terms) / r

    return Formula(relevant, textbook, closed, thresholds, undefined=r == 0)


def interpolated_precision(rows: Sequence[Row], r: float, rel: float | None = None) -> Formula:
    relevant, in_all = relevance(rows, rel)

    def thresholds(blocks: Blocks) -> Number:
        best, hits = Fraction(0), 0
        for _, hi, block in spans(blocks):
            hits += int(sum(block))
            if Fraction(hits, in_all) >= decimal(r):
                best = max(best, Fraction(hits, hi))
        return best

    def textbook(order: Values) -> Number:
        return thresholds([[value] for value in order])

    return Formula(relevant, textbook, thresholds, thresholds, undefined=in_all == 0)


def auc(rows: Sequence[Row], rel: float | None = None) -> Formula:
    relevant, positive = relevance(retrieved(rows), rel)
    pairs = positive * (len(retrieved(rows)) - positive)

    def textbook(order: Values) -> Number:
        return Fraction(sum(a > b for a, b in combinations(order, 2)), pairs)

    def closed(blocks: Blocks) -> Number:
        within = sum(Fraction(sum(a != b for a, b in combinations(x, 2)), 2) for x in blocks)
        across = sum(a > b for x, y in combinations(blocks, 2) for a, b in product(x, y))
        return (across + within) / pairs

    return Formula(relevant, textbook, closed, missing=pairs == 0)


MEASURES: dict[str, Callable[..., Formula]] = {
    "P": precision,
    "R": recall,
    "F": f_score,
    "Rprec": r_precision,
    "CG": cg,
    "DCG": dcg,
    "nDCG": ndcg,
    "RBP": rbp,
    "Judged": judged,
    "SetP": set_precision,
    "SetR": lambda rows, rel=None: recall(rows, None, rel),
    "SetF": set_f,
    "NumRet": lambda rows: constant(len(retrieved(rows))),
    "NumRel": lambda rows, rel=None: constant(relevance(rows, rel)[1]),
    "NumRelRet": lambda rows, rel=None: constant(relevance(retrieved(rows), rel)[1]),
    "RR": reciprocal_rank,
    "Success": success,
    "ERR": err,
    "AP": average_precision,
    "IPrec": interpolated_precision,
    "AUC": auc,
}
