"""TREC files stream to Parquet in constant memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

# VmHWM, not ru_maxrss, which a new process inherits from the one that started it.
SINK = """
import sys
import polars_rankeval as rk
rk.scan_run(sys.argv[1]).sink_parquet(sys.argv[2])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux counts memory there")
def test_a_long_run_is_sunk_in_constant_memory(tmp_path: Path) -> None:
    n = 500_000
    text = pl.select(
        pl.format(
            "{} Q0 document{} {} {} tag", i // 1000, i * 7919 % 1_000_003, i % 1000, 1000 / (i + 1)
        )
        for i in [pl.int_range(n)]
    ).write_csv(include_header=False, quote_style="never")
    block = text.encode()
    plain, packed = tmp_path / "plain.run", tmp_path / "packed.run.gz"
    copies = 100_000_000 // len(block) + 1
    plain.write_bytes(block * copies)
    # Three times as long, and next to nothing of it is mapped: rows that were kept would show.
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for _ in range(3 * copies):
            file.write(block)
    for path, times in ((plain, 1), (packed, 3)):
        result = subprocess.run(
            [sys.executable, "-c", SINK, str(path), str(tmp_path / "rows.parquet")],
            capture_output=True,
            text=True,
            check=True,
        )
        rows = pl.scan_parquet(tmp_path / "rows.parquet").select(pl.len()).collect().item()
        assert rows == n * copies * times
        # Kept in memory, the rows of the second are more than a gigabyte.
        assert int(result.stdout) < 600_000, path
