"""What all benchmarks share."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def seconds(run: Callable[[], Any], times: int) -> float:
    """The best of several."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def agree(name: str, got: Any, wanted: Any, tolerance: float) -> None:
    """A benchmark of unlike things is none."""
    if not np.allclose(got, wanted, atol=tolerance, rtol=0):
        sys.exit(f"{name} does not compute the same: {got} against {wanted}")
