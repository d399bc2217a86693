"""The command that installs shell completion, apart from the others: no one of them needs what it imports."""

from __future__ import annotations

from cyclopts.completion.install import create_install_completion_command

from polars_rankeval.cli.app import app

command = create_install_completion_command(app.install_completion, add_to_startup=True)
