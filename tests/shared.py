"""Where the golden files of trec_eval are: beside the repository, or where RANKEVAL_SHARED says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("RANKEVAL_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GOLDEN = SHARED / "data" / "trec_eval_v10" / "test"

needs_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"{GOLDEN} is not there")
