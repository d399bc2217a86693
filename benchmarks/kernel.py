"""The reference: AP, RR, nDCG@10, P@10 and R@100 with exact ties, as a native kernel of two threads.

It is given dense query codes and does what a program of its own would do: a counting sort by query, a sort of every query by score, one walk
over its tie blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange


@njit(parallel=True)
def kernel(code: Any, score: Any, label: Any, queries: int) -> Any:
    """AP, RR, nDCG@10, P@10 and R@100 of each query, under ties="block"."""
    rows, threads = len(code), 2
    # Counting sort by query; each thread takes one half of the rows.
    place = np.zeros((threads, queries), np.int64)
    for t in prange(threads):
        for i in range(t * rows // threads, (t + 1) * rows // threads):
            place[t, code[i]] += 1
    start = np.zeros(queries + 1, np.int64)
    total = 0
    for q in range(queries):
        start[q] = total
        for t in range(threads):
            count = place[t, q]
            place[t, q] = total
            total += count
    start[queries] = total
    falling = np.empty(rows, score.dtype)
    grades = np.empty(rows, label.dtype)
    for t in prange(threads):
        for i in range(t * rows // threads, (t + 1) * rows // threads):
            to = place[t, code[i]]
            place[t, code[i]] = to + 1
            falling[to] = -score[i]
            grades[to] = label[i]
    out = np.zeros((queries, 5))
    for q in prange(queries):
        s, g = falling[start[q] : start[q + 1]], grades[start[q] : start[q + 1]]
        out[q] = one_query(s, g)
    return out


@njit
def one_query(falling: Any, grades: Any) -> Any:
    """The measures of one query, given negative scores."""
    out = np.zeros(5)
    order = np.argsort(falling)
    n = len(order)
    gains = np.sort(grades[grades > 0])
    relevant = len(gains)
    if relevant == 0:
        return out
    ideal = 0.0
    for i in range(min(10, relevant)):
        ideal += gains[relevant - 1 - i] / np.log2(i + 2.0)
    found, lo = 0, 0
    while lo < n:
        hi, hits, gain = lo, 0, 0.0
        while hi < n and falling[order[hi]] == falling[order[lo]]:
            grade = grades[order[hi]]
            if grade > 0:
                hits += 1
                gain += grade
            hi += 1
        size = hi - lo
        if hits > 0:
            if found == 0:
                reached = 1.0
                for i in range(size - hits + 1):
                    out[1] += reached * (hits / (size - i)) / (lo + i + 1)
                    reached *= (size - i - hits) / (size - i)
            found += hits
            out[0] += hits * found / hi
            weight = 0.0
            for i in range(lo, min(hi, 10)):
                weight += 1 / np.log2(i + 2.0)
            out[2] += gain * weight / size
            if lo < 10:
                out[3] += hits * (min(hi, 10) - lo) / size
            if lo < 100:
                out[4] += hits * (min(hi, 100) - lo) / size
        lo = hi
    out[0] /= relevant
    out[2] /= ideal
    out[3] /= 10
    out[4] /= relevant
    return out
