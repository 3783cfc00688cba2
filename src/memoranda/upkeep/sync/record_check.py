"""Checks the records of a bundle before any of them is used: a bundle is a file that anyone may have written."""

from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.errors import SessionError, SyncError
from memoranda.memory.record.message_rows import encode
from memoranda.memory.record.sessions import check_new
from memoranda.memory.record.transfer.synced_rows import FIELDS, NEW_FLAGS
from memoranda.support.canonical_text import unstorable_character
from memoranda.upkeep.sync.session_changes import LABEL, LABEL_FIELDS, SESSION, read_state
from memoranda.upkeep.sync.stamps import check_stamp, is_number
from memoranda.upkeep.sync.things import CHECKS

Record = dict[str, Any]
_MAX_NAME_CHARS = 1_000


def check_records(records: Iterable[Record], path: object) -> list[Record]:
    """The records, if all of them can be used; raises SyncError that names the first that cannot."""
    found = []
    for number, record in enumerate(records, start=2):
        try:
            _CHECKS[record["t"]](record)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, SessionError) as error:
            raise SyncError(f"{path} cannot be used: record {number} is not valid ({_reason(error)}).") from error
        found.append(record)
    return found


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _check_session(record: Record) -> None:
    head, rows = record["head"], record["rows"]
    _require(_is_name(record["key"]), "key")
    check_new(head["id"], head["source"], None)
    _require(_is_name(head["id"]) and _is_name(head["source"]), "id or source")
    _require(is_number(head["started_at"]), "started_at")
    _require(head["parent"] is None or _is_name(head["parent"]), "parent")
    _require(head["relation"] is None or _is_name(head["relation"]), "relation")
    _require(set(rows) <= {SESSION, LABEL}, "rows")
    for kind, (stamp, base, fields) in rows.items():
        _check_stamps(stamp, base)
        expected = set(LABEL_FIELDS) if kind == LABEL else set(FIELDS) - set(LABEL_FIELDS)
        _require(set(fields) == expected, "fields")
        for name, value in fields.items():
            _require(_is_field(name, value), f"value of {name}")


def _is_field(name: str, value: Any) -> bool:
    if value is None:
        return True
    if name in ("extra", "model_config"):
        return isinstance(value, dict)
    if name == "todos":
        return isinstance(value, list)
    if isinstance(value, str):
        return unstorable_character(value.replace("\0", "")) is None
    return is_number(value)


def _check_message(record: Record) -> None:
    _require(_is_name(record["key"]) and _is_name(record["gid"]), "key or gid")
    if "v" in record:
        check_stamp(record["v"])
    state = read_state(record)
    if state is None:
        return
    fields, copied, flags = state
    _require(isinstance(fields, dict) and isinstance(record["n"], int), "message")
    encode(fields, 0.0)
    _require(is_number(fields["timestamp"]), "timestamp")
    if copied is not None:
        _require(len(copied) == 2 and all(map(_is_name, copied)), "copy")
    if flags is not NEW_FLAGS:
        _require(len(flags) == 3 and flags[0] in (0, 1) and flags[1] in (0, 1), "flags")
        _require(flags[2] is None or (isinstance(flags[2], int) and abs(flags[2]) < 2**31), "flags")


def _check_deleted(record: Record) -> None:
    _require(_is_name(record["key"]), "key")
    _check_stamps(record["v"], record["base"])


def _check_item(record: Record) -> None:
    _require(_is_name(record["id"]), "id")
    if record.get("gone"):
        _require(is_number(record["at"]), "time")
        return
    item = record["item"]
    _require(isinstance(item, dict) and item.get("user_id") is None and _is_name(item["key"]), "item")
    _require(isinstance(item["namespace"], list) and all(map(_is_name, item["namespace"])), "namespace")
    _require(isinstance(item["versions"], list) and bool(item["versions"]), "versions")
    _require(all(is_number(version["updated_at"]) for version in item["versions"]), "versions")


def _check_thing(record: Record) -> None:
    _require(_is_name(record["name"]), "name")
    _check_stamps(record["v"], record["base"])
    CHECKS[record["kind"]](record["name"], record["state"])


def _check_stamps(stamp: Any, base: Any) -> None:
    check_stamp(stamp)
    if base:
        check_stamp(base)
    else:
        _require(base == "", "base")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME_CHARS and unstorable_character(value) is None


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


_CHECKS: Mapping[str, Any] = {
    "session": _check_session,
    "message": _check_message,
    "deleted": _check_deleted,
    "item": _check_item,
    "thing": _check_thing,
}
