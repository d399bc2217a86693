"""Lazy tables of files and directories, told apart by suffix and looked at before Polars is, so that errors say what to do."""

from __future__ import annotations

from collections.abc import Callable
from glob import escape, glob, has_magic
from os.path import expanduser
from pathlib import Path

import polars as pl

from polars_rankeval.errors import RankEvalError

#: Rows whose values tell the types of text columns: scores that start with whole numbers are common.
INFER_ROWS = 10_000


def _parquet(paths: list[str], *, literal: bool, hive: bool) -> pl.LazyFrame:
    return pl.scan_parquet(paths, glob=not literal, hive_partitioning=hive or None)


def _ipc(paths: list[str], *, literal: bool, hive: bool) -> pl.LazyFrame:
    return pl.scan_ipc(paths, glob=not literal, hive_partitioning=hive)


def _csv(paths: list[str], *, literal: bool, hive: bool, separator: str = ",") -> pl.LazyFrame:
    del hive
    return pl.scan_csv(paths, glob=not literal, separator=separator, infer_schema_length=INFER_ROWS)


def _tsv(paths: list[str], *, literal: bool, hive: bool) -> pl.LazyFrame:
    return _csv(paths, literal=literal, hive=hive, separator="\t")


def _ndjson(paths: list[str], *, literal: bool, hive: bool) -> pl.LazyFrame:
    del hive
    # This scan has no way to switch globs off.
    paths = [escape(path) for path in paths] if literal else paths
    return pl.scan_ndjson(paths, infer_schema_length=INFER_ROWS)


_READERS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".arrow": _ipc,
    ".ipc": _ipc,
    ".feather": _ipc,
    ".csv": _csv,
    ".tsv": _tsv,
    ".ndjson": _ndjson,
    ".jsonl": _ndjson,
}
_TEXT = (_csv, _tsv, _ndjson)
_COMPRESSED = (".gz", ".zst")
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".letor")


def scan_path(path: str) -> pl.LazyFrame:
    """Scan the file, the files of a glob, or the table in a directory."""
    if "://" in path:
        return _scan_remote(path)
    path = expanduser(path)
    if Path(path).is_dir():
        return _scan_directory(Path(path))
    if has_magic(path) and not Path(path).exists():
        found = sorted(p for p in glob(path, recursive=True) if Path(p).is_file())
        if not found:
            msg = f"no file matches {path!r}"
            raise RankEvalError(msg)
        return scan_paths(found)
    return scan_paths([path])


def scan_paths(paths: list[str], *, hive: bool = False) -> pl.LazyFrame:
    """Scan files of one kind, one below the other. `hive` adds the columns that directories such as `day=1` hold."""
    readers = {_reader(path) for path in paths}
    if len(readers) > 1:
        msg = f"all files of one source must be of one kind, got {_some(paths)}"
        raise RankEvalError(msg)
    if any("://" in path for path in paths):
        return readers.pop()(paths, literal=False, hive=hive)
    paths = [expanduser(path) for path in paths]
    if len(paths) > 1:
        matches = ([p] if Path(p).exists() or not has_magic(p) else sorted(glob(p)) for p in paths)
        paths = [path for found in matches for path in found]
    for path in paths:
        require_content(path)
    return readers.pop()(paths, literal=True, hive=hive)


def require_content(path: str) -> None:
    """Refuse a local file that is missing or empty."""
    require_file(path)
    file = Path(path)
    if file.is_file() and file.stat().st_size == 0:
        msg = f"the file {path!r} is empty (0 bytes): it has no columns to read; was it written to its end?"
        raise RankEvalError(msg)


def require_file(path: str) -> None:
    """Refuse a local file that is missing."""
    file = Path(path)
    if not file.exists():
        msg = f"no such file: {path!r}{_nearest_file(file)}"
        raise RankEvalError(msg)


def _scan_remote(path: str) -> pl.LazyFrame:
    if path.endswith("/"):
        return pl.scan_parquet(path)
    return _reader(path)([path], literal=False, hive=False)


def _scan_directory(directory: Path) -> pl.LazyFrame:
    if (directory / "_delta_log").is_dir():
        return _lakehouse("deltalake", pl.scan_delta, str(directory))
    if metadata := _iceberg_metadata(directory):
        return _lakehouse("pyiceberg", pl.scan_iceberg, str(metadata))
    # Names that start so are the marks and check sums that writers leave.
    files = [
        file
        for file in sorted(directory.rglob("*"))
        if file.is_file()
        and not any(p.startswith((".", "_")) for p in file.relative_to(directory).parts)
    ]
    if not files:
        msg = f"the directory {str(directory)!r} has no files"
        raise RankEvalError(msg)
    known = [str(file) for file in files if _find_reader(str(file)) is not None]
    if not known:
        msg = (
            f"the directory {str(directory)!r} has no Parquet, IPC, CSV or NDJSON files; "
            f"it has {_some([file.name for file in files])}"
        )
        raise RankEvalError(msg)
    if len({_find_reader(path) for path in known}) > 1 or len(known) < len(files):
        msg = (
            f"the directory {str(directory)!r} has files of several kinds, {_some(_one_of_each(files))}: "
            f"name those you mean, as in {str(directory / ('*' + Path(known[0]).suffix))!r}"
        )
        raise RankEvalError(msg)
    return scan_paths(known, hive=True)


def _iceberg_metadata(directory: Path) -> Path | None:
    """The newest metadata file of an Iceberg table; names are `v3.metadata.json` or `00003-<uuid>.metadata.json`."""

    def version(file: Path) -> int:
        digits = file.name.lstrip("v").split("-")[0].split(".")[0]
        return int(digits) if digits.isdecimal() else -1

    return max((directory / "metadata").glob("*.metadata.json"), key=version, default=None)


def _lakehouse(package: str, scan: Callable[..., pl.LazyFrame], path: str) -> pl.LazyFrame:
    try:
        return scan(path)
    except ImportError:
        msg = f"reading {path!r} needs the package {package}: pip install {package}"
        raise RankEvalError(msg) from None


def _find_reader(path: str) -> Callable[..., pl.LazyFrame] | None:
    suffixes = [s.lower() for s in Path(path.partition("?")[0] if "://" in path else path).suffixes]
    compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    if compressed:
        suffixes.pop()
    reader = _READERS.get(suffixes[-1] if suffixes else "")
    return None if compressed and reader not in _TEXT else reader


def is_table_file(path: str | Path) -> bool:
    """Whether the suffix of a path is that of files that hold tables."""
    return _find_reader(str(path)) is not None


def _reader(path: str) -> Callable[..., pl.LazyFrame]:
    reader = _find_reader(path)
    if reader is not None:
        return reader
    if Path(path).suffix.lower() in SVMLIGHT:
        msg = f"{path!r} is an SVMlight file, of which the columns are chosen: use rk.scan_svmlight(path, features=[...])"
        raise RankEvalError(msg)
    msg = f"cannot tell the format of {path!r} by its suffix: known are {', '.join(_READERS)}"
    if "://" in path:
        msg += "; for a directory of Parquet files end it with '/', for a table use pl.scan_delta or pl.scan_iceberg"
    elif not Path(path).exists():
        msg += f"; and there is no such file or directory{_nearest_file(Path(path))}"
    raise RankEvalError(msg)


def _nearest_file(file: Path) -> str:
    if not file.parent.is_dir():
        return f", nor a directory {str(file.parent)!r}"
    from difflib import get_close_matches  # only a failure needs it

    near = get_close_matches(file.name, [p.name for p in file.parent.iterdir()], n=1, cutoff=0.6)
    return f"; did you mean {str(file.parent / near[0])!r}?" if near else ""


def _one_of_each(files: list[Path]) -> list[str]:
    return list({"".join(file.suffixes[-2:]): file.name for file in files}.values())


def _some(names: list[str]) -> str:
    """Some of the names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more
