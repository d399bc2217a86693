"""Importing the package stays light, and registers the namespaces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars_rankeval as rk

ROOT = Path(rk.__file__).parents[1]
HEAVY = ("pyarrow", "numpy", "sklearn", "pandas", "scipy", "duckdb", "altair")


def run(code: str) -> str:
    """What the code prints in a fresh interpreter, where warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, polars_rankeval; print(*sys.modules)"
    loaded = set(run(code).split())
    # What polars itself loads is not ours to avoid.
    by_polars = set(run("import sys, polars; print(*sys.modules)").split())
    assert not {name for name in HEAVY if name in loaded - by_polars}


def test_evaluation_loads_nothing_heavy() -> None:
    code = (
        "import sys, polars_rankeval as rk\n"
        "rk.evaluate(rk.sample(), 'AP', 'ERR', 'nDCG@10', by='model').collect()\n"
        "print(*sys.modules)"
    )
    loaded = set(run(code).split())
    assert not {name for name in HEAVY if name in loaded}


def test_import_registers_the_namespaces() -> None:
    code = (
        "import polars as pl, polars_rankeval\n"
        "for kind in (pl.DataFrame, pl.LazyFrame, pl.Expr): print(hasattr(kind, 'rankeval'))"
    )
    assert run(code).split() == ["True"] * 3


def test_public_names() -> None:
    assert sorted(rk.__all__) == rk.__all__
    assert all(hasattr(rk, name) for name in rk.__all__)
    assert all(getattr(rk, name).__doc__ for name in rk.__all__)


def test_run_as_a_module() -> None:
    command = [sys.executable, "-W", "error", "-m", "polars_rankeval"]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "nDCG@10" in result.stdout
