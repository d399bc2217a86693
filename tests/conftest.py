"""Hypothesis profiles, and the fixture that runs a test in every way."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from ways import WAYS, Way

# No deadline: the first plan of a process takes longer than the others, and machines are shared.
settings.register_profile(
    "local", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30
)
settings.register_profile(
    "ci", parent=settings.get_profile("local"), derandomize=True, database=None, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session", params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    """Runs a function on a frame: eager, lazy in memory or lazy streaming."""
    return WAYS[request.param]
