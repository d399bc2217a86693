"""The grammar of measures: `nDCG(gain=exp2)@10` taken apart and put together, whatever the names mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from polars_rankeval.errors import RankEvalError

# Compiled when the first measure is read: import takes a tenth less.
_GRAMMAR = r"\s*(?P<name>11pt_avg|[A-Za-z][A-Za-z_]*?)\s*(?:\(\s*(?P<params>[^()]*)\))?\s*(?:@\s*(?P<k>\S+)|[_.](?P<trec>[-.\dp][-.\d,=p]*))?\s*"


@dataclass(frozen=True)
class Written:
    """The parts of a measure as it is written; those that are not there are None."""

    name: str
    #: what stands in brackets
    inside: str | None
    #: what stands behind @
    at: str | None
    #: what stands behind _ or ., as trec_eval writes it
    trec: str | None

    @classmethod
    def read(cls, text: str) -> Written | None:
        """Take a text apart; None if it has not the form of a measure."""
        match = re.fullmatch(_GRAMMAR, text)
        return None if match is None else cls(*match.group("name", "params", "k", "trec"))

    def params(self) -> dict[str, Any]:
        """Names and values of the parameters in brackets.

        Raises
        ------
        RankEvalError
            If one is not written as name=value, or stands there twice.
        """
        params: dict[str, Any] = {}
        for part in (self.inside or "").split(","):
            if not part.strip():
                continue
            name, equals, value = (x.strip() for x in part.partition("="))
            if not equals or not value:
                msg = f"write parameters as name=value, got {part.strip()!r}"
                raise RankEvalError(msg)
            if name in params:
                msg = f"parameter {name!r} is given twice"
                raise RankEvalError(msg)
            params[name] = _read_value(value)
        return params


def _read_value(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return read_number(text)
    except (ValueError, OverflowError):
        return text.strip("'\"")


def read_number(text: str) -> int | float:
    """A number, whole where it can be."""
    number = float(text)
    return int(number) if number.is_integer() else number


def structured(value: Any) -> Any:
    """Gains and points as tuples, from dicts, lists, or their text: `1:3;2:9`, `0.2;0.5`."""
    if (
        isinstance(value, str)
        and re.fullmatch(r"[-+.\d:;eE ]+", value)
        and re.search("[:;]", value)
    ):
        try:
            parts = [tuple(read_number(x) for x in part.split(":")) for part in value.split(";")]
        except ValueError:
            return value
        return tuple(parts) if ":" in value else tuple(x for (x,) in parts)
    if isinstance(value, dict):
        return tuple((plain(x), plain(y)) for x, y in value.items())
    if isinstance(value, list | tuple):
        return tuple(
            tuple(map(plain, x)) if isinstance(x, list | tuple) else plain(x) for x in value
        )
    return value


def shown(value: Any) -> str:
    """How a value is written."""
    if isinstance(value, tuple):
        return ";".join(":".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in value)
    return str(value)


def plain(value: Any) -> Any:
    """2.0 and 2 are one value, and print alike."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
