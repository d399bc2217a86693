"""The commands of docs/cli.md print what stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from polars_rankeval import cli

pytest.importorskip("cyclopts")
PAGE = Path(__file__).parent.parent / "docs" / "cli.md"


def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for command, expected in re.findall(
            r"^\$ rankeval (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE
        ):
            cli.main(shlex.split(command))
            captured = capsys.readouterr()
            assert captured.out + captured.err == expected, command
            ran += 1
    assert ran >= 8
