"""The bytes of a text as a column of numbers, without a copy.

Polars takes the buffers of any object that offers them through the Arrow C data interface. pyarrow would do so for bytes, but its import
takes as long as evaluating a million lines.
"""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    PYFUNCTYPE,
    Structure,
    addressof,
    c_char_p,
    c_int64,
    c_void_p,
    cast,
    py_object,
    pythonapi,
)
from typing import Any

import polars as pl

_Release = CFUNCTYPE(None, c_void_p)


# Both as https://arrow.apache.org/docs/format/CDataInterface.html lays them out.
class _Schema(Structure):
    _fields_ = (
        ("format", c_char_p),
        ("name", c_char_p),
        ("metadata", c_char_p),
        ("flags", c_int64),
        ("n_children", c_int64),
        ("children", c_void_p),
        ("dictionary", c_void_p),
        ("release", _Release),
        ("private_data", c_void_p),
    )


class _Array(Structure):
    _fields_ = (
        ("length", c_int64),
        ("null_count", c_int64),
        ("offset", c_int64),
        ("n_buffers", c_int64),
        ("n_children", c_int64),
        ("buffers", c_void_p),
        ("children", c_void_p),
        ("dictionary", c_void_p),
        ("release", _Release),
        ("private_data", c_void_p),
    )


#: What columns look at, until they are dropped, by the address of their list of buffers.
_held: dict[int, Any] = {}


def _drop_schema(address: int) -> None:
    _Schema.from_address(address).release = _Release()


def _drop_array(address: int) -> None:
    array = _Array.from_address(address)
    del _held[array.buffers]
    array.release = _Release()


_release_schema, _release_array = _Release(_drop_schema), _Release(_drop_array)
_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
# A capsule keeps the address of its name.
_SCHEMA, _ARRAY = b"arrow_schema", b"arrow_array"
_UINT8 = b"C"


class _Exported:
    """Offers bytes to Polars, once."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        # No bits that tell nulls, and the bytes.
        buffers = (c_void_p * 2)(None, cast(c_char_p(self._text), c_void_p).value)
        at = addressof(buffers)
        # Polars moves both out of the capsules while this object is there.
        self._schema = _Schema(_UINT8, b"", release=_release_schema)
        self._array = _Array(len(self._text), n_buffers=2, buffers=at, release=_release_array)
        _held[at] = (self._text, buffers)
        return (
            _capsule(addressof(self._schema), _SCHEMA, None),
            _capsule(addressof(self._array), _ARRAY, None),
        )


def numbers(text: bytes) -> pl.Series:
    """The bytes as UInt8; the text lives as long as the column.

    Examples
    --------
    >>> numbers(b"q1").to_list()
    [113, 49]
    """
    return pl.Series(_Exported(text))
