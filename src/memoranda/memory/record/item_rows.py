"""Checks items and encodes them as rows: namespaces, values, the paths that are searchable, checksums."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

from memoranda.errors import SessionError
from memoranda.memory.record.message_rows import decode_json, dump_json, require_storable
from memoranda.types import Item, ItemVersion

MAX_KEY_CHARS = 1_000
MAX_LABELS = 20
COLUMNS = ("id", "user_id", "namespace", "key", "value", "indexed", "version", "event",
           "created_at", "updated_at", "ttl", "expires_at", "checksum")  # fmt: skip
# Not `expires_at`, which a read may change.
_COVERED = ("user_id", "namespace", "key", "value", "indexed", "version", "event", "created_at", "updated_at", "ttl")
_SIGN = 2**31
_MAX_DEPTH = 50

Namespace = tuple[str, ...]


class ItemRow(NamedTuple):
    """A row of `items` with the columns in COLUMNS."""

    id: int
    user_id: str | None
    namespace: str
    key: str
    value: str | None
    indexed: str | None
    version: int
    event: str
    created_at: float
    updated_at: float
    ttl: float | None
    expires_at: float | None
    checksum: int | None

    @property
    def damaged(self) -> bool:
        """Whether the row does not match its checksum."""
        return self.checksum is not None and checksum_of(self._asdict()) != self.checksum

    def as_item(self) -> Item:
        return Item(
            decode_namespace(self.namespace), self.key, decode_json(self.value or "null"), self.version,
            self.created_at, self.updated_at, self.expires_at, damaged=self.damaged,
        )  # fmt: skip

    def as_version(self) -> ItemVersion:
        value = None if self.value is None else decode_json(self.value)
        return ItemVersion(self.version, self.event, value, self.created_at, self.updated_at)


def check_namespace(namespace: Sequence[str]) -> Namespace:
    """The namespace as a tuple; raises SessionError unless it has 1 to 20 labels that are text and not empty."""
    labels = check_labels("A namespace", namespace)
    if not labels:
        raise SessionError("A namespace needs at least one label, such as ('notes',).")
    return labels


def check_labels(name: str, labels: Sequence[str]) -> Namespace:
    """The labels as a tuple; raises SessionError unless all of them are text and not empty."""
    # A string is a sequence, too, but of letters.
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise SessionError(f"{name} is a tuple of labels, not {type(labels).__name__}.")
    if len(labels) > MAX_LABELS:
        raise SessionError(f"{name} has {len(labels)} labels; {MAX_LABELS} are allowed.")
    for label in labels:
        if not isinstance(label, str) or not label:
            raise SessionError(f"{name} consists of texts that are not empty, not of {str(label)[:60]!r}.")
        _check_length("A label", label)
    return tuple(labels)


def check_key(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise SessionError(f"The key of an item must be text that is not empty, not {str(key)[:60]!r}.")
    _check_length("A key", key)
    require_storable("key", key)
    return key


def _check_length(name: str, text: str) -> None:
    if len(text) > MAX_KEY_CHARS:
        raise SessionError(f"{name} has {len(text):,} characters; {MAX_KEY_CHARS:,} are allowed: {text[:60]!r}…")


def check_ttl(ttl: Any) -> float | None:
    """The time to live in seconds; raises SessionError unless it is a number above 0, or None."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl < 1e12:
        raise SessionError(f"ttl must be a number of seconds above 0, not {str(ttl)[:60]}.")
    return float(ttl)


def encode_namespace(labels: Sequence[str]) -> str:
    """The labels as JSON in ASCII, which every database stores unchanged."""
    return json.dumps(list(labels), separators=(",", ":"))


def decode_namespace(stored: str) -> Namespace:
    labels = decode_json(stored)
    return tuple(map(str, labels)) if isinstance(labels, list) else (stored,)


def encode_paths(index: bool | Sequence[str] | None) -> str | None:
    """The paths that are searchable: None or True means all texts, False or an empty list means none."""
    if index is None or index is True:
        return None
    paths = [] if index is False else index
    if isinstance(paths, str) or not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
        raise SessionError("index must be true, false or a list of paths such as 'text' or 'notes[*].title'.")
    return dump_json(list(paths))


def identify(user_id: str | None, namespace: str, key: str) -> str:
    """The id that all versions of an item share."""
    return sha256(dump_json([user_id, namespace, key]).encode()).hexdigest()[:32]


def checksum_of(row: Mapping[str, Any]) -> int:
    """The checksum of a version, as a signed number of 32 bits."""
    covered = [value.hex() if isinstance(value := row.get(name), float) else value for name in _COVERED]
    text = "\0".join("" if value is None else str(value) for value in covered)
    return (crc32(text.encode("utf-8", "surrogatepass")) ^ _SIGN) - _SIGN


def searchable_text(key: str, value: Any, indexed: str | None) -> str:
    """The text by which an item is found: its key, and the names and texts of its value; or what its paths name."""
    if indexed is None:
        return "\n".join([key, *_texts(value, named=True)])
    paths = decode_json(indexed)
    found = [each for path in (paths if isinstance(paths, list) else ()) for each in _at_path(value, str(path))]
    return "\n".join(text for each in found for text in _texts(each))


def _texts(value: Any, depth: int = 0, *, named: bool = False) -> list[str]:
    """Every text and number in a value; with `named`, the names of its fields as well."""
    if depth > _MAX_DEPTH or value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        lines = []
        for name, field in value.items():
            texts = _texts(field, depth + 1, named=named)
            lines += [f"{name}: {texts[0]}", *texts[1:]] if named and texts else texts
        return lines
    if isinstance(value, list):
        return [text for each in value for text in _texts(each, depth + 1, named=named)]
    return [str(value)]


def _at_path(value: Any, path: str) -> list[Any]:
    """The values at a path: names separated by dots, `[2]` or `[-1]` for one element of a list, `[*]` for all."""
    found = [value]
    steps = path.replace("[", ".[").split(".") if path not in ("", "$") else []
    for step in filter(None, steps):
        if step == "[*]":
            found = [each for one in found if isinstance(one, list) for each in one]
        elif step.startswith("[") and step.endswith("]"):
            found = [one[number] for one in found if isinstance(one, list) for number in _number(step, len(one))]
        else:
            found = [one[step] for one in found if isinstance(one, dict) and step in one]
    return found


def _number(step: str, length: int) -> list[int]:
    try:
        number = int(step[1:-1])
    except ValueError:
        return []
    return [number] if -length <= number < length else []
