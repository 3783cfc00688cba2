"""A name with a credential in it never reaches the file, and still names the same session; ordinary names stay."""

import contextlib
import inspect
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import SessionError, StorageError
from memoranda.memory.record.feed import ItemFeed
from memoranda.memory.record.items import Items
from memoranda.memory.record.message_rows import REDACTED
from memoranda.memory.record.passages import ItemPassages
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.memory.record.store_part import StoredName, StorePart
from memoranda.memory.record.transfer.imports import MessageState
from memoranda.memory.record.transfer.items import ItemTransfer, SyncedItems
from memoranda.safety import redaction
from memoranda.safety.redaction import Redactor
from memoranda.safety.secrets import find_secrets
from memoranda.safety.secrets.issuer_tokens import EMBEDDED_FORMATS, FORMATS, MARKED_FORMATS
from memoranda.storage.position import START
from tests.memory.record.conftest import file_bytes

pytestmark = pytest.mark.slow

# In the form of an issuer, put together here so that no scanner takes this file for a leak.
TOKEN = "ghp" + "_AbC1dEf2gHi3jKl4mNo5pQr6sTu7vWx8yZ9a"
KNOWN = "correct-horse-battery"
REDACTOR = Redactor([KNOWN])


def _new_token(seed: object) -> str:
    letters = random.Random(repr(seed)).choices(string.ascii_letters + string.digits, k=36)
    return "ghp" + "_" + "".join(letters)


@pytest.fixture
def redacting(path: Path) -> Iterator[SessionStore]:
    with open_store(path, redactor=REDACTOR) as opened:
        yield opened


def _hex(r: random.Random, n: int) -> str:
    return r.randbytes(n).hex()


def _uuid(r: random.Random) -> str:
    return str(uuid.UUID(int=r.getrandbits(128), version=4))


def _pick(r: random.Random, alphabet: str, n: int) -> str:
    return "".join(r.choices(alphabet, k=n))


_ALNUM = string.ascii_letters + string.digits
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_SHAPES: dict[str, Callable[[random.Random], str]] = {
    "uuid": _uuid,
    "uuid in capitals": lambda r: _uuid(r).upper(),
    "hex 16": lambda r: _hex(r, 8),
    "hex 32": lambda r: _hex(r, 16),
    "commit": lambda r: _hex(r, 20),
    "hex 64": lambda r: _hex(r, 32),
    "our own": lambda r: f"2026{r.randrange(1000, 1299)}_{r.randrange(10**6):06}_{_hex(r, 3)}",
    "ulid": lambda r: _pick(r, _CROCKFORD, 26),
    "ksuid": lambda r: _pick(r, _ALNUM, 27),
    "nanoid": lambda r: _pick(r, _ALNUM + "_-", 21),
    "cuid": lambda r: "c" + _pick(r, string.ascii_lowercase + string.digits, 24),
    "object id": lambda r: _hex(r, 12),
    "snowflake": lambda r: str(r.randrange(10**16, 10**19)),
    "16 digits": lambda r: str(r.randrange(4 * 10**15, 6 * 10**15)),
    "timestamp": lambda r: str(r.randrange(1_600_000_000_000, 1_900_000_000_000)),
    "telegram": lambda r: f"telegram:-100{r.randrange(10**9, 10**10)}",
    "whatsapp": lambda r: f"{r.randrange(10**11, 10**13)}@s.whatsapp.net",
    "slack": lambda r: f"slack:C{_pick(r, _CROCKFORD, 10)}:{r.randrange(10**9)}.{r.randrange(10**6)}",
    "matrix": lambda r: f"!{_pick(r, string.ascii_letters, 18)}:matrix.org",
    "mail": lambda r: f"<CA{_pick(r, _ALNUM + '_-+=', 40)}@mail.gmail.com>",
    "address": lambda r: f"{_pick(r, string.ascii_lowercase, 8)}.{r.randrange(1000)}@example.org",
    "claude code": lambda r: f"claude-code-{_uuid(r)}",
    "claude code, colon": lambda r: f"claude-code:{_uuid(r)}",
    "sub-agent": lambda r: f"claude-code-{_uuid(r)}-agent-{_hex(r, 4)}",
    "opencode": lambda r: f"opencode-ses_{_hex(r, 6)}{_pick(r, _ALNUM, 14)}",
    "rollout": lambda r: f"codex-rollout-2026-01-{r.randrange(10, 29)}T12-00-00-{_uuid(r)}.jsonl",
    "openai": lambda r: f"chatcmpl-{_pick(r, _ALNUM, 29)}",
    "openai response": lambda r: f"resp_{_hex(r, 25)}",
    "openai thread": lambda r: f"thread_{_pick(r, _ALNUM, 24)}",
    "openai call": lambda r: f"call_{_pick(r, _ALNUM, 24)}",
    "anthropic": lambda r: f"msg_01{_pick(r, _ALNUM, 22)}",
    "anthropic tool": lambda r: f"toolu_01{_pick(r, _ALNUM, 22)}",
    "stripe": lambda r: f"cus_{_pick(r, _ALNUM, 14)}",
    "clerk": lambda r: f"user_2{_pick(r, _ALNUM, 26)}",
    "auth0": lambda r: f"auth0|{_hex(r, 12)}",
    "google": lambda r: f"google-oauth2|{r.randrange(10**20, 10**21)}",
    "repository": lambda r: f"github.com/acme/app-{r.randrange(100)}#{_hex(r, 20)}",
    "path": lambda r: f"/home/ada/src/service-{r.randrange(100)}/v2.{r.randrange(9)}/{_hex(r, 4)}",
    "windows path": lambda r: rf"C:\Users\ada\src\app{r.randrange(100)}",
    "external": lambda r: f"turn/{r.randrange(10**12)}-{_hex(r, 4)}/{r.randrange(9)}",
    "tenant": lambda r: f"acme/{_uuid(r)}",
    "words": lambda r: f"{_pick(r, string.ascii_lowercase, 7)}-release-{r.randrange(10**4)}",
    "source": lambda r: r.choice(["cli", "telegram", "cron", "subagent", "claude-code", "library", "api_server"]),
}  # fmt: skip


def test_ordinary_names_stay() -> None:
    """No id of a program, service or file is taken for a credential."""
    for shape, make_name in _SHAPES.items():
        generator = random.Random(shape)
        names = [make_name(generator) for _ in range(300)]
        assert [(name, REDACTOR.name(name)) for name in names if REDACTOR.name(name) != name] == []


_AFFIXES = st.one_of(st.text(max_size=12), st.sampled_from(["claude-code-", "password=", "/srv/", "key: ", "a" * 200]))


@given(_AFFIXES, st.sampled_from([TOKEN, KNOWN, "password=hunter2hunter2"]), _AFFIXES)
@settings(max_examples=20, deadline=None)
def test_the_stored_form_is_stable_and_clean(before: str, secret: str, after: str) -> None:
    """It is the form of itself, contains no credential, and is no longer than an id may be."""
    name = f"{before}{secret}{after}"
    stored = REDACTOR.name(name)
    assert REDACTOR.name(stored) == stored
    assert Redactor([KNOWN]).name(name) == stored
    assert secret not in stored or find_secrets(name) == [] == find_secrets(stored)
    assert len(stored) <= max(len(name), 150)


def test_no_replacement_looks_like_a_credential() -> None:
    """For every kind, whatever the digest."""
    formats = [*FORMATS, *EMBEDDED_FORMATS]
    kinds = {kind for kind, *_ in formats} | {kind for _, _, kind, _ in MARKED_FORMATS} | {"known_value", "password"}
    generator = random.Random(5)
    for kind in sorted(kinds):
        for _ in range(30):
            name = f"redacted-{kind}-{_hex(generator, 8)}"
            assert REDACTOR.name(name) == name


def test_different_credentials_have_different_forms() -> None:
    """Two sessions stay two, and the rest of the name stays readable."""
    one, other = REDACTOR.name(f"claude-code-{TOKEN}"), REDACTOR.name(f"claude-code-{_new_token(1)}")
    assert one != other
    assert one.startswith("claude-code-redacted-github_token-")


def test_the_same_id_finds_the_same_session(redacting: SessionStore) -> None:
    """By every way of asking, for the caller's form and the stored one."""
    stored = redacting.sessions.create_session(TOKEN, _new_token("source"), project=f"/srv/{TOKEN}")
    redacting.messages.append_message(TOKEN, "user", "hello", external_id=_new_token("message"))
    again = redacting.messages.append_message(TOKEN, "user", "hello", external_id=_new_token("message"))
    assert [row["id"] for row in redacting.messages.get_messages(TOKEN)] == [again]
    assert redacting.messages.get_messages(stored) == redacting.messages.get_messages(TOKEN)
    assert redacting.sessions.resolve_session_id(TOKEN) == stored
    assert redacting.listing.session_count(source=_new_token("source")) == 1
    assert [row["id"] for row in redacting.listing.search_sessions_by_id(TOKEN)] == [stored]
    listed = redacting.listing.list_sessions_rich([_new_token("source")], projects={f"/srv/{TOKEN}"})
    assert [row["id"] for row in listed] == [stored]
    assert redacting.messages.get_external_ids([TOKEN], [_new_token("message"), "x"]) == {_new_token("message"): stored}
    assert redacting.deletion.delete_sessions([TOKEN]) == 1
    assert redacting.deletion.deleted_sessions([TOKEN]) == {stored}


def test_answers_of_tools_still_find_their_calls(redacting: SessionStore) -> None:
    """Where an id looks like a credential, in the call and in its answer."""
    redacting.sessions.create_session("s", "cli")
    call = {"id": TOKEN, "function": {"name": "sh", "arguments": "{}"}}
    redacting.messages.append_messages(
        "s", [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "ok", "tool_call_id": TOKEN}]
    )
    calling, answer = redacting.messages.get_messages("s")
    assert calling["tool_calls"][0]["id"] == answer["tool_call_id"] == REDACTOR.name(TOKEN)


def _parts(store: SessionStore) -> list[StorePart]:
    names = [name for name in dir(store) if not name.startswith("_")]
    return [part for name in names if isinstance(part := getattr(store, name), StorePart)]


# Internal steps of a transaction that another method begins, readers of a part of the text, and the repair that takes
# rows of a damaged file as they are.
_NOT_CALLED = {"connection", "matcher", "tables", "marker", "conversation", "lease", "context", "states", "columns"}


def _planted(method: str, parameter: inspect.Parameter, session_id: str) -> Any:
    """A value for a parameter; a text has a credential of its own in it."""
    token = _new_token((method, parameter.name))
    if parameter.name == "session_id":
        return session_id
    if parameter.name == "todos":
        return json.dumps([{"content": token}])
    if parameter.name in ("message", "messages", "sessions"):
        message = {"role": token, "content": "x", "external_id": token + "m", "tool_call_id": token, "own": token}
        session = {"id": token, "source": token, "parent_session_id": session_id, "project": token, "title": token}
        values = {"message": message, "messages": [message], "sessions": [{**session, "messages": [message]}]}
        return values[parameter.name]
    if parameter.name == "fields":
        return {"source": token, "project": token, "title": token}
    if parameter.annotation is str or str in get_args(parameter.annotation):
        return token
    if "str" in str(parameter.annotation):
        return [token]
    return START if "Position" in str(parameter.annotation) else 1


def _call(part: StorePart, name: str, session_id: str) -> list[str]:
    """Call a method with a credential in each text; the names of its parameters."""
    method = getattr(part, name)
    parameters = [each for each in inspect.signature(method).parameters.values() if "Callable" not in str(each)]
    if _NOT_CALLED.intersection(parameter.name for parameter in parameters):
        return []
    args, kwargs = [], {}
    for parameter in parameters:
        value = _planted(name, parameter, session_id)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            args.append(value)
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not None:
            kwargs[parameter.name] = value
    try:
        result = method(*args, **kwargs)
        if inspect.isgenerator(result):
            list(result)
    except (SessionError, StorageError, TypeError, ValueError, OverflowError, KeyError, AttributeError):
        pass
    return [parameter.name for parameter in parameters]


def test_no_method_stores_a_credential_in_a_name(
    redacting: SessionStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every text argument of every public method of the store, found by its signature."""
    # There are a hundred credentials.
    monkeypatch.setattr(redaction, "_SCRYPT_COST", 2)
    called: dict[str, list[str]] = {}
    for part in _parts(redacting):
        for name, _ in inspect.getmembers(type(part), inspect.isfunction):
            if name.startswith("_") or name in ("vacuum", "release_space"):
                continue
            session_id = _new_token(name)
            redacting.sessions.create_session(session_id, "cli")
            redacting.messages.append_message(session_id, "user", "words")
            called[name] = _call(part, name, session_id)
    assert sum("session_id" in parameters for parameters in called.values()) > 30
    stored = file_bytes(path)
    leaks = [(name, each) for name in called for each in called[name] if _new_token((name, each)).encode() in stored]
    assert leaks == []
    assert b"ghp" + b"_" not in stored


# How the parameters with names are called.
_NAMES = frozenset({
    "session_id", "new_id", "parent_session_id", "id_or_prefix", "prefix", "session_ids", "source", "exclude_sources",
    "project", "projects", "confirmed", "holder", "key",
})  # fmt: skip
# These refuse keys with credentials, and do not convert them.
_PARTS_FOR_ITEMS = (Items, ItemFeed, ItemPassages, ItemTransfer, SyncedItems)


def _recording(converted: list[str]) -> Callable[[str], str]:
    """Converts a name, and remembers that it did."""

    def convert(name: str) -> str:
        converted.append(name)
        return REDACTOR.name(name)

    return convert


def _call_with_names(part: StorePart, name: str, names: dict[str, Any]) -> None:
    """Call a method with these names, and with no useful value for its other parameters."""
    method = getattr(part, name)
    args, kwargs = [], {}
    for parameter in inspect.signature(method).parameters.values():
        default = [] if parameter.default is parameter.empty else parameter.default
        value = names.get(parameter.name, default)
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        elif parameter.kind is not parameter.VAR_KEYWORD:
            args.append(value)
    with contextlib.suppress(Exception):
        result = method(*args, **kwargs)
        if inspect.isgenerator(result):
            list(result)


def test_every_method_converts_its_names_first(redacting: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its other arguments are; what is called within a transaction takes converted names."""
    monkeypatch.setattr(redaction, "_SCRYPT_COST", 2)
    converted: list[str] = []
    expected: dict[str, str] = {}
    parts = [part for part in _parts(redacting) if not isinstance(part, _PARTS_FOR_ITEMS)]
    for part in parts:
        monkeypatch.setattr(part, "_name", _recording(converted))
    for part in parts:
        for name, method in inspect.getmembers(type(part), inspect.isfunction):
            parameters = inspect.signature(method).parameters
            if name.startswith("_") or _NAMES.isdisjoint(parameters):
                continue
            if "connection" in parameters:
                assert parameters["session_id"].annotation is StoredName, name
                continue
            where = f"{type(part).__name__}.{name}"
            texts = [key for key in _NAMES.intersection(parameters) if "str" in str(parameters[key].annotation)]
            names = {key: _planted(where, parameters[key], _new_token(where)) for key in texts}
            _call_with_names(part, name, names)
            for key, value in names.items():
                expected[value if isinstance(value, str) else value[0]] = f"{where}({key})"
    assert len(expected) > 80
    assert [where for token, where in expected.items() if token not in converted] == []


def test_an_append_converts_the_id_of_its_session_once(
    redacting: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every message of a conversation passes here."""
    redacting.sessions.create_session("s", "cli")
    converted: list[str] = []
    monkeypatch.setattr(redacting.messages, "_name", _recording(converted))
    redacting.messages.append_message("s", "user", "hello")
    assert converted == ["s"]


def test_names_in_imported_rows_are_converted(redacting: SessionStore, path: Path) -> None:
    """In the columns of another program, and in what says which message is the original of another."""
    original = redacting.sessions.create_session(_new_token("original"), "cli")
    message = {"role": "user", "content": "hi", "external_id": _new_token("m"), "timestamp": 1.0}
    redacting.imported_rows.append_messages(original, [message], [MessageState()])
    redacting.sessions.create_session("copy", "cli")
    redacting.imported_rows.set_columns("copy", {"source": TOKEN, "billing_base_url": f"https://{TOKEN}@x"}, {})
    state = MessageState(original=(_new_token("original"), _new_token("m")))
    redacting.imported_rows.append_messages("copy", [message], [state])
    (first,) = redacting.messages.get_messages(original)
    (copied,) = redacting.messages.get_messages("copy")
    assert copied["copy_of"] == first["id"]
    assert b"ghp" + b"_" not in file_bytes(path)
    assert REDACTED not in copied


def test_a_new_user_id_must_contain_no_credential(redacting: SessionStore, path: Path) -> None:
    """It decides who sees what, so it is refused instead of replaced; a user from before redaction stays."""
    with open_store(path) as earlier:
        earlier.sessions.create_session("old", "cli", user_id=_new_token("earlier user"))
    with pytest.raises(SessionError, match="credential"):
        redacting.sessions.create_session("s", "cli", user_id=TOKEN)
    assert TOKEN.encode() not in file_bytes(path)
    redacting.sessions.create_session("new", "cli", user_id=_new_token("earlier user"))
