"""Reads MessagePack as LangGraph writes it, without creating the objects that it describes.

LangGraph stores an object as an extension: the names of its module and class, and its fields. A program that loads it
imports that module and calls that class; here only the fields are read.
"""

import struct
from typing import Any

_MAX_DEPTH = 100
# Extensions of LangGraph whose third value has the fields of an object.
_OBJECTS = frozenset({0, 1, 2, 3, 4, 5})
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
# The width of the length that follows.
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def read_msgpack(data: bytes) -> Any:
    """Return the value in MessagePack bytes; raises ValueError when they are damaged or nested too deeply."""
    try:
        return _Reader(data, 0).value()
    except (IndexError, struct.error, UnicodeError, TypeError, RecursionError) as error:
        raise ValueError(f"damaged MessagePack: {type(error).__name__}") from error


class _Reader:
    """A position in the bytes; `depth` counts the values around it."""

    def __init__(self, data: bytes, depth: int) -> None:
        self._data = data
        self._at = 0
        self._depth = depth

    def value(self) -> Any:
        kind = self._take(1)[0]
        if kind < 0x80:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind < 0x90:
            return self._map(kind & 0x0F)
        if kind < 0xA0:
            return self._list(kind & 0x0F)
        if kind < 0xC0:
            return self._text(kind & 0x1F)
        return self._long_value(kind)

    def _long_value(self, kind: int) -> Any:
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBERS:
            return struct.unpack(_NUMBERS[kind], self._take(struct.calcsize(_NUMBERS[kind])))[0]
        if kind in _TEXTS:
            return self._text(self._length(_TEXTS[kind]))
        if kind in _BYTES:
            return f"[{len(self._take(self._length(_BYTES[kind]))):,} bytes]"
        if kind in _LISTS:
            return self._list(self._length(_LISTS[kind]))
        if kind in _MAPS:
            return self._map(self._length(_MAPS[kind]))
        if kind in _EXTENSIONS:
            return self._extension(self._length(_EXTENSIONS[kind]))
        if kind in _FIXED_EXTENSIONS:
            return self._extension(_FIXED_EXTENSIONS[kind])
        raise ValueError("damaged MessagePack: an unknown type")

    def _extension(self, size: int) -> Any:
        code = self._take(1)[0]
        content = self._take(size)
        if code not in _OBJECTS or self._depth > _MAX_DEPTH:
            return None
        described = _Reader(content, self._depth + 1).value()
        return described[2] if isinstance(described, list) and len(described) > 2 else None

    def _list(self, count: int) -> list[Any]:
        self._enter(count)
        found = [self.value() for _ in range(count)]
        self._depth -= 1
        return found

    def _map(self, count: int) -> dict[Any, Any]:
        self._enter(count)
        found = {}
        for _ in range(count):
            key = self.value()
            found[key if isinstance(key, str) else str(key)] = self.value()
        self._depth -= 1
        return found

    def _enter(self, count: int) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("damaged MessagePack: nested too deeply")
        if count > len(self._data) - self._at:
            raise ValueError("damaged MessagePack: a list is longer than the data")

    def _text(self, size: int) -> str:
        return self._take(size).decode("utf-8", "surrogatepass")

    def _length(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError("damaged MessagePack: it ends too early")
        taken, self._at = self._data[self._at : end], end
        return taken
