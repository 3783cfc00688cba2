"""Encodes messages as rows and decodes rows to messages without losing anything.

Text is stored unchanged. Structured content is JSON, marked by `content_format`, with non-ASCII characters unescaped.
Half a surrogate pair, which no database stores, is escaped in JSON. Fields without a column are stored in `extra` and
returned as fields. A caller's field with the name of a column that the store fills is returned in `shadowed`.

A program may store messages of the known roles only. Imported messages keep the role that their own program gave them.

The same messages have other ids in another store. A summary names the messages it replaces, and a shortened message
names its original, so an import changes those ids to the ones of the importing store. It changes a number only if that
is certainly an id: in a summary, one within the range that the summary replaces; in a shortened message, the id of the
original.
"""

import json
import time
from binascii import crc32
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memoranda.errors import SessionError
from memoranda.memory.record.schema import MESSAGES, hour_of
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows
from memoranda.support.lazy_pattern import compile_later
from memoranda.support.suggestions import did_you_mean

_BETWEEN_HALVES = compile_later("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_HERMES_JSON = "\x00json:"
_HALF_PAIR = compile_later("[\ud800-\udfff]")
_TEXTS = ("tool_call_id", "tool_name", "finish_reason", "reasoning", "reasoning_content", "external_id")
_JSONS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
_NUMBERS = ("token_count", "copy_of", "is_summary")
_RESERVED = frozenset({"id", "session_id", "active", "compacted", "rewound", "content_format", "extra"})
# Columns that describe a row of the store it was read from; the new store sets them itself.
_STORE_COLUMNS = {"id": int, "session_id": str, "active": int, "compacted": int, "rewound": int}
SHADOWED = "shadowed"
_MAX_NUMBER = 2**62
_MAX_PARTS = 1_000_000
_LEAVES = frozenset({str, int, float, bool, type(None)})
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MAX_DEPTH = 200
# Extra fields that mark which turn a message belongs to and that the turn is complete; they are not content.
TURN, DONE = "memoranda_turn", "memoranda_done"
TURN_FIELDS = frozenset({TURN, DONE})
# An extra field of a message whose text was redacted.
REDACTED = "redacted"
# A field of a message that does not match its checksum; an extra field of one whose damage is known.
DAMAGED = "memoranda_damaged"
# Names of the same field in other programs.
_ALIASES = {"platform_message_id": "external_id", "message_id": "external_id"}

# The columns that `encode` fills, in its order.
WRITTEN = ("role", "content", "content_format", "timestamp", *_TEXTS, *_JSONS, *_NUMBERS, "extra")
READ = tuple(column.name for column in MESSAGES.columns)

Message = dict[str, Any]


class EncodedMessage(NamedTuple):
    """A row to insert, how many secrets were removed from it, and how many tools it calls."""

    row: list[Any]
    secrets: int
    tool_calls: int


def encode(message: Mapping[str, Any], now: float | None = None) -> list[Any]:
    """The values of a new row, for the columns in WRITTEN."""
    row: list[Any] = [None] * len(WRITTEN)
    extra: Message = {}
    renamed: Message = {}
    encoders = []
    for key, value in message.items():
        index = _INDEXES.get(key)
        if index is None:
            (renamed if key in _RESERVED or key in _ALIASES else extra)[key] = value
        elif value is not None:
            row[index] = value
            if index in _ENCODERS and not (index in _TEXT_INDEXES and type(value) is str and value and value.isascii()):
                encoders.append(index)
    if renamed:
        encoders += _add_renamed(renamed, row, extra)
    if row[_ROLE] not in ROLES:
        _check_role(row[_ROLE])
    content = row[_CONTENT]
    if type(content) is not str or not content.isascii() or content[:1] == "\0":
        row[_CONTENT], row[_FORMAT] = encode_content(content)
    if row[_TIMESTAMP] is None:
        row[_TIMESTAMP] = time.time() if now is None else now
    else:
        row[_TIMESTAMP] = seconds(row[_TIMESTAMP])
    for index in encoders:
        row[index] = _ENCODERS[index](WRITTEN[index], row[index], extra)
    if row[_COPY_OF] is not None:
        # Only the original keeps the external id.
        row[_EXTERNAL_ID] = None
        extra.pop("external_id", None)
    row[_EXTRA] = dump_json(extra) if extra else None
    return row


def encode_redacted(message: Mapping[str, Any], secrets: int, now: float | None = None) -> EncodedMessage:
    """A new row with what is counted in it; `secrets` were removed from the message."""
    row = encode(message, now)
    return EncodedMessage(row, secrets, 0 if row[_TOOL_CALLS] is None else count_tool_calls(message["tool_calls"]))


def _check_role(role: Any) -> None:
    if not isinstance(role, str) or not role:
        raise SessionError(f"A message needs a role such as user or assistant, not {role!r}.")
    if not _storable(role):
        raise SessionError(f"A role must be text without unpaired surrogates, not {role[:60]!r}.")


def _add_renamed(fields: Message, row: list[Any], extra: Message) -> list[int]:
    """Store fields with names of other programs or of reserved columns; return the indexes to encode."""
    filled = []
    for key, value in fields.items():
        if value in (None, ""):
            continue
        if key in _RESERVED:
            if not isinstance(value, _STORE_COLUMNS.get(key, ())):
                shadowed = extra.get(SHADOWED, {})
                extra[SHADOWED] = {**(shadowed if isinstance(shadowed, dict) else {SHADOWED: shadowed}), key: value}
        elif not row[_INDEXES[_ALIASES[key]]]:
            filled.append(_INDEXES[_ALIASES[key]])
            row[filled[-1]] = value
        else:
            # Two names for the same field: the second one stays an extra field.
            extra[key] = value
    return filled


def decode(row: Sequence[Any]) -> Message:
    """Decode a row with the columns in READ, and merge its extra fields in; the checksum is not a field."""
    message: Message = dict(zip(READ, row, strict=True))
    del message["checksum"]
    message["content"] = decode_content(message["content"], message.pop("content_format"))
    for name in _JSONS:
        if message[name] is not None:
            message[name] = decode_json(message[name])
    extra = message.pop("extra")
    if extra is None:
        return message
    fields = decode_json(extra)
    # Damaged JSON is returned as text.
    return message | (fields if isinstance(fields, dict) else {"extra": extra})


def as_chat(message: Message) -> Message:
    """A message in the form of chat APIs, without empty fields and without those that only the store needs."""
    fields = {key: value for key, value in message.items() if key not in _BOOKKEEPING and value is not None}
    # Services accept an empty `reasoning_content`, and some require it; an empty `reasoning` says nothing.
    if fields.get("reasoning") == "":
        del fields["reasoning"]
    return {"role": message["role"], "content": message["content"]} | fields


_BOOKKEEPING = (
    _RESERVED
    | {"role", "content", "copy_of", "is_summary", "token_count", "external_id", "timestamp", SHADOWED, REDACTED}
    | {DAMAGED}
    | TURN_FIELDS
)


def encode_content(content: Any) -> tuple[str | None, str | None]:
    """The stored form of content of any kind, and its format."""
    if content is None:
        return None, None
    if not isinstance(content, str):
        return dump_json(content), "json"
    if content.startswith(_HERMES_JSON):
        # Without the mark it would be read as structured content of Hermes.
        return dump_json(content), "json"
    if _storable(content):
        return content, None
    # Two adjacent halves would come back as one character.
    pieces = _BETWEEN_HALVES.split(content)
    return (dump_json(content), "json") if len(pieces) == 1 else (dump_json(pieces), "pieces")


def _require_plain(value: Any) -> None:
    """Raise SessionError for keys that JSON would silently turn into text, and for nesting too deep to read."""
    level, parts = [value], 0
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if type(item) in _LEAVES:
                continue
            if type(item) is dict or isinstance(item, Mapping):
                for key in item:
                    if not isinstance(key, str):
                        raise SessionError("A structure can be stored only if all its keys are text.")
                below += item.values()
            elif isinstance(item, (list, tuple)):
                below += item
        parts += len(below)
        if not below:
            return
        if parts > _MAX_PARTS:
            break
        level = below
    raise SessionError("The value to be stored is nested too deeply, has too many parts, or contains itself.")


def require_storable(name: str, text: Any) -> None:
    """Raise SessionError unless the value is None or text that a database can store."""
    if text is not None and not isinstance(text, str):
        raise SessionError(f"{name} must be text, not {str(text)[:60]}.")
    if text is not None and not _storable(text):
        raise SessionError(f"{name} must be text without unpaired surrogates, not {text[:60]!r}.")


def decode_content(stored: str | None, content_format: str | None) -> Any:
    if content_format is None or stored is None:
        if stored is not None and stored.startswith(_HERMES_JSON):
            # Hermes has written to this store; it marks structured content in the text itself.
            return decode_json(stored.removeprefix(_HERMES_JSON))
        return stored
    value = decode_json(stored)
    return "".join(map(str, value)) if content_format == "pieces" else value


def dump_json(value: Any) -> str:
    """JSON with all characters unescaped, except those that cannot be stored."""
    _require_plain(value)
    try:
        text = _as_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"A message contains a value that is neither text nor JSON: {error}.") from error
    return text if _storable(text) else _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def decode_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # Another program wrote it: return the raw text instead of failing.
        return text


def is_own(message: Mapping[str, Any], session: Mapping[str, Any] | None) -> bool:
    """Return whether a message has the user's own words, as this program was given them.

    A host writes text of its own in the user's role, so nothing that was imported from one counts; what its hooks
    delivered is in their log.
    """
    if message["role"] != "user" or message["is_summary"]:
        return False
    is_of_host = session is not None and bool(session.get("host"))
    return not is_of_host or (message["external_id"] is None and message["copy_of"] is None)


def text_of(content: Any) -> str:
    """The text of content of any kind: text itself, or the text parts of structured content, one per line."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        return "\n".join(text_of(content[key]) for key in ("text", "content", "output") if content.get(key))
    return str(content)


def _storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encode_text(name: str, value: Any, extra: Message) -> str | None:
    if not isinstance(value, str):
        raise SessionError(f"{name} must be text, not {type(value).__name__}.")
    if name == "external_id" and not value:
        # An empty id does not count as an id: two messages without an id are different messages.
        return None
    if _storable(value):
        return value
    if name == "external_id":
        # External ids identify messages: no two may become equal.
        raise SessionError(f"external_id must be text without unpaired surrogates, not {value[:60]!r}.")
    extra[name] = value
    return _HALF_PAIR.sub("\ufffd", value)


def _encode_json(name: str, value: Any, extra: Message) -> str | None:
    if value == []:
        return None
    if isinstance(value, str):
        # Some callers pass JSON text that they read elsewhere.
        value = decode_json(value)
    return dump_json(value)


def encode_number(name: str, value: Any, extra: Message | None = None) -> int:
    """Return a whole number that a database can store, or raise SessionError."""
    if isinstance(value, int) and abs(value) < _MAX_NUMBER:
        return int(value)
    raise SessionError(f"{name} must be a whole number, not {str(value)[:60]}.")


def _encode_flag(name: str, value: Any, extra: Message) -> int | None:
    if not isinstance(value, int):
        raise SessionError(f"{name} must be true or false, not {str(value)[:60]}.")
    return 1 if value else None


def seconds(value: Any) -> float:
    """A caller's time as seconds since 1970."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -_MAX_NUMBER < value < _MAX_NUMBER:
        # Without the sign of a zero, which SQLite does not store.
        return float(value) + 0.0
    if isinstance(value, datetime):
        return value.timestamp()
    raise SessionError(f"{str(value)[:60]} is not a time: use seconds since 1970 or a datetime.")


_INDEXES = {name: index for index, name in enumerate(WRITTEN) if name not in _RESERVED}
_ROLE, _CONTENT, _FORMAT, _TIMESTAMP, _EXTERNAL_ID, _COPY_OF, _EXTRA = map(
    WRITTEN.index,
    ("role", "content", "content_format", "timestamp", "external_id", "copy_of", "extra"),
)
_TEXT_INDEXES = frozenset(map(WRITTEN.index, _TEXTS))
_TOKEN_COUNT, _IS_SUMMARY, _TOOL_CALLS = map(WRITTEN.index, ("token_count", "is_summary", "tool_calls"))
_EMPTY_IN_PLAIN_ROW = len(WRITTEN) - 3
_SIGN = 2**31
_ENCODED_AT_ONCE = 1_000_000
_ENCODERS: dict[int, Callable[[str, Any, Message], Any]] = {
    **{WRITTEN.index(name): _encode_text for name in _TEXTS},
    **{WRITTEN.index(name): _encode_json for name in _JSONS},
    **{WRITTEN.index(name): encode_number for name in ("token_count", "copy_of")},
    WRITTEN.index("is_summary"): _encode_flag,
}


def checksum_of_row(session_id: str, row: Sequence[Any]) -> int:
    """The checksum of a row of a session with the columns in WRITTEN."""
    try:
        timestamp = row[_TIMESTAMP].hex()
        if row.count(None) == _EMPTY_IN_PLAIN_ROW and row[_CONTENT] is not None:
            # Most messages have a role, content and a time, and every append pays for this.
            text = "\0".join((session_id, row[_ROLE], row[_CONTENT], "", timestamp))
        else:
            texts = [value or "" for value in row]
            texts[_TIMESTAMP] = timestamp
            if row[_TOKEN_COUNT]:
                texts[_TOKEN_COUNT] = str(row[_TOKEN_COUNT])
            if row[_COPY_OF]:
                texts[_COPY_OF] = str(row[_COPY_OF])
            if row[_IS_SUMMARY]:
                texts[_IS_SUMMARY] = str(row[_IS_SUMMARY])
            # The empty columns at the end are cut off before the content joins them: it may be very long.
            text = "\0".join((session_id, *texts[:_FORMAT], "\0".join(texts[_FORMAT:]).rstrip("\0")))
    except (AttributeError, TypeError):
        # Another program has stored values of other types.
        text = "\0".join([session_id, *["" if value is None else str(value) for value in row]]).rstrip("\0")
    before = 0
    if len(text) > _ENCODED_AT_ONCE:
        # Not in one piece, because the text exists twice already.
        starts = range(0, len(text), _ENCODED_AT_ONCE)
        for start in starts[:-1]:
            before = crc32(text[start : start + _ENCODED_AT_ONCE].encode(), before)
        text = text[starts[-1] :]
    return signed_crc32(text.encode(), before)


def signed_crc32(content: bytes, before: int = 0) -> int:
    """The CRC-32 of some bytes, after others with the CRC-32 `before`.

    It is signed, which takes the least space in a database.
    """
    return (crc32(content, before) ^ _SIGN) - _SIGN


def matches(covered: Sequence[Any], stored: int) -> bool:
    """Whether a row with the columns in COVERED has this checksum."""
    try:
        return checksum_of_row(covered[0], covered[1:]) == stored
    except UnicodeEncodeError:
        # No program stored that.
        return False


COUNTED = "(active = 1 OR compacted = 1) AND copy_of IS NULL AND is_summary IS NULL"
"""A condition on messages: those that were said, which are all messages except rewound ones, copies and summaries."""


def delete_messages(connection: Connection, session_id: str) -> int:
    """Delete every message of a session and return how many there were; the caller sets the count, or deletes the row.

    With a negative count, no trigger notes each message: the caller notes the session.
    """
    retire_message_ids(connection)
    connection.execute("UPDATE sessions SET message_count = -1 WHERE id = ?", (session_id,))
    return connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,)).rowcount


def retire_message_ids(connection: Connection) -> None:
    """Record the highest id before messages are deleted, so that no later message gets it again."""
    # Not with the maximum inside the INSERT, for which SQLite would read all messages.
    (highest,) = connection.execute("SELECT max(id) FROM messages").fetchone()
    if highest is not None:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES ('last_deleted_message', ?) ON CONFLICT (key) DO UPDATE"
            " SET value = excluded.value WHERE CAST(state_meta.value AS INTEGER) < CAST(excluded.value AS INTEGER)",
            (str(highest),),
        )


def recount(connection: Connection, session_id: str) -> None:
    """Set a session's counters and last activity from its messages."""
    # Locks the row where writers of one session may overlap: a concurrent append would be counted by neither.
    connection.execute("UPDATE sessions SET message_count = message_count WHERE id = ?", (session_id,))
    found = connection.execute(
        "SELECT COALESCE(sum(m.active), 0), COALESCE(sum(m.said), 0),"
        " COALESCE(max(CASE WHEN m.said = 1 THEN m.timestamp END), sessions.started_at) FROM sessions"
        " LEFT JOIN (SELECT CASE WHEN active = 1 THEN 1 ELSE 0 END AS active,"
        f" CASE WHEN {COUNTED} THEN 1 ELSE 0 END AS said, timestamp, session_id FROM messages) m"
        " ON m.session_id = sessions.id WHERE sessions.id = ? GROUP BY sessions.id",
        (session_id,),
    ).fetchone()
    if found is None:
        return
    count, said, latest = found
    rows = readable_rows(
        connection,
        f"SELECT tool_calls FROM messages WHERE session_id = ? AND tool_calls IS NOT NULL AND {COUNTED}",
        (session_id,),
    )
    calls = sum(count_tool_calls(stored) for (stored,) in rows)
    connection.execute(
        "UPDATE sessions SET message_count = ?, own_message_count = ?, tool_call_count = ?, last_active = ?,"
        " active_hour = ? WHERE id = ?",
        (count, said, calls, latest, hour_of(latest), session_id),
    )


def count_tool_calls(calls: Any) -> int:
    """How many tools a message calls, from its field or the JSON of that field."""
    calls = decode_json(calls) if isinstance(calls, str) else calls
    return len(calls) if isinstance(calls, (list, tuple)) else 1


# A text that contains one of these phrases was shortened.
TAKEN_OUT = "were taken out here to make room"
IMAGE_TAKEN_OUT = "an image was here, in message"

_RANGE = compile_later(r"\bmessages ([0-9]{1,18}) to ([0-9]{1,18})\b")
# "messages 3 to 9", "around_message_id 3 or 9", "message 7", and "[7]" as in the transcript for a summary.
_NAMED = compile_later(
    r"\b(?:messages? |around_message_id )[0-9]{1,18}\b(?: (?:to|or|and) [0-9]{1,18}\b)?|(?<![\w\])])\[[0-9]{1,18}\]"
)
_NUMBER = compile_later(r"[0-9]+")


def renumber_references(message: Mapping[str, Any], new_id: Callable[[int], int | None]) -> Mapping[str, Any]:
    """Change the ids in a message of another store to those of this store; `new_id` returns None for unknown ones."""
    content, original = message.get("content"), message.get("copy_of")
    if message.get("is_summary") and isinstance(content, str) and (span := _RANGE.search(content)):
        renumbered = range(int(span[1]), int(span[2]) + 1)
    elif isinstance(original, int) and _is_shortened(text_of(content)):
        renumbered = range(original, original + 1)
    else:
        return message

    def renumber(old: int) -> int:
        new = new_id(old) if old in renumbered else None
        return old if new is None else new

    return {**message, "content": _renumber(content, renumber)}


def strip_references(stored: Any, *, is_summary: bool) -> Any:
    """Replace the ids in a stored text with 0, so that the same message compares equal in every store."""
    if isinstance(stored, str) and (is_summary or _is_shortened(stored)):
        return _renumber(stored, lambda _: 0)
    return stored


def _is_shortened(text: str) -> bool:
    return TAKEN_OUT in text or IMAGE_TAKEN_OUT in text


def _renumber(content: Any, number: Callable[[int], int]) -> Any:
    if isinstance(content, str):
        return _NAMED.sub(lambda named: _NUMBER.sub(lambda digits: str(number(int(digits[0]))), named[0]), content)
    if isinstance(content, list):
        return [_renumber(part, number) for part in content]
    if isinstance(content, Mapping) and isinstance(content.get("text"), str):
        return {**content, "text": _renumber(content["text"], number)}
    return content


ROLES = ("user", "assistant", "tool", "system", "developer")


def require_known_role(role: Any) -> None:
    """Raise SessionError for a role that no model and no search would understand."""
    if role not in ROLES:
        suggestion = did_you_mean(role, ROLES) if isinstance(role, str) else ""
        raise SessionError(f"The role of a message is one of {', '.join(ROLES)}, not {role!r}.{suggestion}")


def require_message(message: Any) -> None:
    """Raise SessionError unless a message is a dict with a known role."""
    if not isinstance(message, Mapping):
        found = "None" if message is None else type(message).__name__
        raise SessionError(f"A message is a dict with a role and content, not {found}.")
    require_known_role(message.get("role"))


def require_messages(messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages as a list; raise SessionError unless each is a dict with a known role."""
    listed = list(messages)
    for message in listed:
        require_message(message)
    return listed
