"""The examples of the README, the documentation pages and the docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import polars_rankeval

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(polars_rankeval.__path__, "polars_rankeval.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    if name.endswith("spark"):
        pytest.importorskip("pyspark")
    if ".cli" in name:
        pytest.importorskip("cyclopts")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_function_has_an_example() -> None:
    public = [getattr(polars_rankeval, name) for name in polars_rankeval.__all__]
    without = [o.__name__ for o in public if ">>>" not in (o.__doc__ or "")]
    assert without == ["Partitions", "RankEvalError"]


def test_bundled_sample(capsys: pytest.CaptureFixture[str]) -> None:
    from polars_rankeval.__main__ import main

    main()
    assert "nDCG@10" in capsys.readouterr().out
