"""Creates, ends, describes and finds sessions, with their titles and the tasks of their conversations.

A title is a name for people, unique among a user's sessions and numbered within a conversation.

The list of tasks follows the messages: undoing a turn undoes what the turn changed in it. `state_meta` has one value
per conversation, `{"versions": [{"after": 7, "todos": […]}, …]}`. A version says which message was the last when the
list was saved. The current list is the latest version whose message was not rewound, so a rewind and its restore change
nothing here.
"""

import time
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.errors import LockTimeoutError, SessionBusyError, SessionError, TakenSessionError
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import decode_json, dump_json, require_storable, seconds
from memoranda.memory.record.schema import PROMPT_REFERENCE, SESSIONS, hour_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StoredName, StorePart, count_redactions, unknown_session
from memoranda.memory.record.system_prompts import select_list, store_prompt, update_columns
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Dialect, Engine, HeldLock, Statement
from memoranda.storage.state_meta import drop_meta, read_meta, write_meta
from memoranda.support.json_object import parse_list, parse_object
from memoranda.support.lazy_pattern import compile_later
from memoranda.support.shorten import shorten_end

MAX_TITLE_CHARS = 100
_NEVER_SHORTENED = 80
_NUMBERED = compile_later(r"(?P<base>.*\S) #(?P<number>[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True, order=True)
class TitledSession:
    """A session found by its title; numbered titles sort by number, the latest last."""

    number: int
    started_at: float
    session_id: str
    title: str


def tidy(title: str) -> str | None:
    """Put a title on one line without invisible characters; None if nothing is left."""
    shown = title
    if not title.isprintable():
        shown = "".join([" " if char.isspace() else char for char in title if char.isspace() or _is_shown(char)])
    tidied = " ".join(shown.split())
    if len(tidied) > MAX_TITLE_CHARS:
        raise SessionError(f"A title may have at most {MAX_TITLE_CHARS} characters; this one has {len(tidied)}.")
    return tidied or None


def _is_shown(char: str) -> bool:
    # A joiner holds an emoji together; all other format characters are invisible.
    return char == "\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Co")


class Titles(StorePart):
    """Sets titles and finds sessions by them."""

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Set the title of a session, or remove it with a blank one. False if the session does not exist.

        If an earlier session of the same conversation has the title, it moves to this session. Raises SessionError if
        any other session has it.
        """
        session_id = self._stored_name(session_id)
        clean, redacted = self._redact(title or "")
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            if not self._exists(connection, session_id):
                return False
            self.claim_title(connection, session_id, clean)
            count_redactions(connection, redacted)
            return True

    def get_session_title(self, session_id: str) -> str | None:
        session_id = self._stored_name(session_id)
        row = self._fetch_one(
            f"SELECT title FROM sessions WHERE id = ? AND {self._in_scope}", (session_id, *self._scope.values)
        )
        return row[0] if row else None

    def list_titled(self, title: str) -> tuple[list[TitledSession], list[TitledSession]]:
        """The sessions with exactly that title (of several users, in a store for all), and its numbered variants.

        A text that cannot be a title finds nothing.
        """
        try:
            clean = tidy(title)
        except SessionError:
            return [], []
        if clean is None:
            return [], []
        with self._engine.reading() as connection:
            found = sorted(self._variants(connection, clean))
        exact = [session for session in found if session.title == clean]
        return exact, [session for session in found if session.title != clean]

    def resolve_session_by_title(self, title: str) -> str | None:
        """The latest of the sessions with that title and its numbered variants; a title with a number means that one.

        `list_titled` returns all of them.
        """
        clean = tidy(title)
        if clean is None:
            return None
        with self._engine.reading() as connection:
            found = self._variants(connection, clean)
        if _NUMBERED.fullmatch(clean):
            # The caller names one of a series.
            found = [session for session in found if session.number == 1] or found
        return max(found).session_id if found else None

    def get_next_title_in_lineage(self, base: str) -> str:
        """The next free title after `base`: itself, or the same with the next number."""
        with self._engine.reading() as connection:
            return self.next_title(connection, base)

    def next_title(self, connection: Connection, base: str) -> str:
        """The next free title after `base` within a transaction: itself, or the same with the next number."""
        clean = tidy(base)
        if clean is None:
            raise SessionError("A title must not be blank.")
        numbered = _NUMBERED.fullmatch(clean)
        stem = numbered["base"] if numbered else clean
        taken = [session.number for session in self._variants(connection, stem)]
        return _with_number(stem, max(taken) + 1) if taken else stem

    def claim_title(self, connection: Connection, session_id: StoredName, title: str) -> None:
        """Set the title of a session within a transaction; an earlier session of the conversation loses it.

        Raises SessionError if a session of another conversation has the title.
        """
        clean = tidy(title)
        user, conversation = connection.execute(
            "SELECT user_id, conversation_id FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        if clean is not None:
            self._engine.lock_titles(connection, user)
            holder = connection.execute(
                "SELECT id, conversation_id FROM sessions WHERE title = ? AND COALESCE(user_id, '') = ? AND id <> ?",
                (clean, user or "", session_id),
            ).fetchone()
            if holder and holder[1] != conversation:
                raise SessionError(f"The title {clean!r} is taken by session {holder[0]}.")
            if holder:
                connection.execute("UPDATE sessions SET title = NULL WHERE id = ?", (holder[0],))
                note_change(connection, holder[0])
        connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (clean, session_id))
        note_change(connection, session_id)

    def _variants(self, connection: Connection, stem: str) -> list[TitledSession]:
        """The sessions titled `stem` (number 1) or `stem #n`; a long stem is shortened to make room."""
        condition, values = self._dialect.starts_with("title", stem[:_NEVER_SHORTENED])
        # The index on titles finds the few sessions; by that on users, every session of a user would be read.
        in_scope = self._scope.condition(self._dialect.unindexed("sessions"))
        rows = connection.execute(
            f"SELECT title, started_at, id FROM sessions WHERE {condition} AND {in_scope}",
            (*values, *self._scope.values),
        )
        found = []
        for name, started, session_id in rows:
            match = _NUMBERED.fullmatch(name)
            if name == stem:
                found.append(TitledSession(1, started, session_id, name))
            elif match and name == _with_number(stem, int(match["number"])):
                found.append(TitledSession(int(match["number"]), started, session_id, name))
        return found


def _with_number(stem: str, number: int) -> str:
    ending = f" #{number}"
    return shorten_end(stem, MAX_TITLE_CHARS - len(ending)) + ending


# The field of an exported session, and the prefix of the key in `state_meta`.
TODOS = "todos"
# How many saved versions a conversation keeps: as many changes as can be undone.
_MAX_VERSIONS = 20

Version = dict[str, Any]


class Todos(StorePart):
    """Reads and saves the lists of tasks."""

    def conversation_todos(self, session_id: str) -> str | None:
        """The list of tasks of this conversation as JSON, across restarts and continuations; None without one."""
        session_id = self._stored_name(session_id)
        with self._engine.reading() as connection:
            self._require(connection, session_id)
            todos = read_todos(self._dialect, connection, session_id)
        return None if todos is None else dump_json(todos)

    def saved_rows(self, conversations: Collection[str]) -> Statement:
        """The statement for what `current_lists` needs."""
        chosen = self._dialect.one_of("conversation_id", conversations)
        return (
            "SELECT DISTINCT conversation_id, value FROM sessions"
            f" JOIN state_meta ON key = '{_key('')}' || conversation_id WHERE {chosen.text} AND {self._in_scope}",
            (*chosen.values, *self._scope.values),
        )

    def current_lists(self, rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
        """The lists of tasks by conversation; without those of which nothing was saved, or all is undone."""
        saved = {conversation: _parse_versions(value) for conversation, value in rows}
        with self._engine.reading() as view:
            return _current_lists(self._dialect, view, saved)

    def save_conversation_todos(self, session_id: str, todos: str) -> None:
        """Save the list of tasks of this conversation, given as JSON; raises SessionError for what is not a list."""
        session_id = self._stored_name(session_id)
        saved, redacted = self._redact(_parse_list(todos))
        with self._changing(session_id) as connection:
            # A copy is rewound together with its original, to which branches refer too.
            last = connection.execute(
                "SELECT coalesce(copy_of, id) FROM messages WHERE session_id = ? AND active = 1"
                " ORDER BY id DESC LIMIT 1",
                (session_id,),
            ).fetchone()
            add_version(connection, session_id, saved, after=last[0] if last else 0)
            count_redactions(connection, redacted)


def read_todos(dialect: Dialect, view: Connection, session_id: str) -> list[Any] | None:
    """The current list of the conversation that a session belongs to; None when nothing was saved, or all is undone."""
    conversation = _conversation(view, session_id)
    return _current_lists(dialect, view, {conversation: _read_versions(view, conversation)}).get(conversation)


def _current_lists(dialect: Dialect, view: Connection, saved: Mapping[str, list[Version]]) -> dict[str, list[Any]]:
    after = {version["after"] for versions in saved.values() for version in versions if version["after"]}
    rewound = set()
    if after:
        ids, copies = dialect.one_of("messages.id", after), dialect.one_of("messages.copy_of", after)
        # A message or its copy left the context without a compression; perhaps another program did that.
        statement = (
            "SELECT conversation_id, messages.id, copy_of FROM messages"
            " JOIN sessions ON sessions.id = messages.session_id"
            f" WHERE active = 0 AND compacted = 0 AND ({ids.text} OR {copies.text})"
        )
        (rows,) = dialect.read_at_once(view, [(statement, (*ids.values, *copies.values))])
        rewound = {(row[0], message_id) for row in rows for message_id in row[1:]}
    return {
        name: kept[-1]["todos"]
        for name, versions in saved.items()
        if (kept := [version for version in versions if (name, version["after"]) not in rewound])
    }


def add_version(connection: Connection, session_id: str, todos: list[Any], *, after: int = 0) -> None:
    """Save a list as the current one; `after` is the message that must stay for the list to stay, 0 for none."""
    conversation = _conversation(connection, session_id)
    versions = [*_read_versions(connection, conversation), {"after": after, "todos": todos}]
    _write_versions(connection, conversation, versions[-_MAX_VERSIONS:])


def copy_todos(connection: Connection, session_id: str, branch_id: str) -> None:
    """Give a branch the list of its original, with the versions to which an undo in the branch returns."""
    versions = _read_versions(connection, _conversation(connection, session_id))
    if versions:
        _write_versions(connection, branch_id, versions)


def drop_todos(connection: Connection, session_id: str) -> None:
    """Remove the list of a conversation whose first session is deleted."""
    drop_meta(connection, _key(session_id))


def _read_versions(connection: Connection, conversation: str) -> list[Version]:
    return _parse_versions(read_meta(connection, _key(conversation)))


def _parse_versions(value: str | None) -> list[Version]:
    # What another program wrote is not a list of tasks.
    versions = (parse_object(value) or {}).get("versions")
    return [version for version in versions if _is_version(version)] if isinstance(versions, list) else []


def _parse_list(text: str) -> list[Any]:
    found = parse_list(text)
    if found is None:
        raise SessionError("The tasks of a conversation must be a JSON list.")
    return found


def _is_version(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("after"), int) and isinstance(value.get("todos"), list)


def _write_versions(connection: Connection, conversation: str, versions: list[Version]) -> None:
    write_meta(connection, _key(conversation), dump_json({"versions": versions}))


def _conversation(connection: Connection, session_id: str) -> str:
    (found,) = connection.execute("SELECT conversation_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return str(found)


def _key(conversation: str) -> str:
    return f"{TODOS}:{conversation}"


RELATIONS = ("compression", "branch", "delegation")
COLUMNS = tuple(column.name for column in SESSIONS.columns if column != PROMPT_REFERENCE)
"""The columns that callers see: the prompt, but not how it is stored."""
SELECTED = select_list(COLUMNS)
_MAX_ID_CHARS = 200
# A session with one of these sources and a parent is delegated work.
_DELEGATE_SOURCES = ("subagent", "tool")
# How a child relates to a parent that ended for this reason.
_BY_END_REASON = {"compression": "compression", "branched": "branch"}
# What Hermes writes into the settings of a child.
_MARKS = {"_branched_from": "branch", "_delegate_from": "delegation"}
_SETTABLE = ("model", "model_config", "system_prompt", "billing_provider", "billing_base_url", "billing_mode",
             "project")  # fmt: skip

Row = dict[str, Any]


class Sessions(StorePart):
    """The rows of the sessions table."""

    def __init__(self, engine: Engine, scope: Scope, redactor: Redactor | None, titles: Titles) -> None:
        super().__init__(engine, scope, redactor)
        self._titles = titles

    def create_session(
        self,
        /,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        relation: str | None = None,
        title: str | None = None,
        started_at: Any = None,
        project: str | None = None,
        imported_until: float | None = None,
        **extra: Any,
    ) -> str:
        """Create a session, or fill the empty fields of an existing one; its source, user and start never change.

        `relation` says how it relates to its parent. By default it is the continuation of a parent that ended by
        compression, a branch of a parent that ended by branching, and delegated work otherwise. `_branched_from` and
        `_delegate_from`, Hermes's marks in `model_config`, count. `imported_until` is the end of another program's.
        """
        session_id, source = self._stored_names((session_id, source))
        parent_session_id = self._stored_name(parent_session_id)
        check_new(session_id, source, user_id)
        _check_fields(relation, extra)
        user = self.own_user(user_id)
        clean, redacted = self._redact({"model": model, "system_prompt": system_prompt, "title": title, "extra": extra,
                                        "model_config": model_config})  # fmt: skip
        relation = relation or _marked_relation(model_config)
        fields = {
            "model": clean["model"],
            "system_prompt": clean["system_prompt"],
            "model_config": None if model_config is None else dump_json(clean["model_config"]),
            "extra": dump_json(clean["extra"]) if extra else None,
            # Searches filter by project; it contains no prose and is stored as a name.
            "project": self._stored_name(project or None),
        }
        for name in ("model", "system_prompt", "project"):
            require_storable(name, fields[name])
        end = {} if imported_until is None else {"ended_at": seconds(imported_until), "end_reason": "imported"}
        start = time.time() if started_at is None else seconds(started_at)
        with self._engine.writing() as connection:
            if parent_session_id is not None:
                self._engine.lock_session(connection, parent_session_id)
            self._engine.lock_session(connection, session_id)
            is_new = self._is_free(connection, session_id)
            if is_new:
                lineage = self.lineage_columns(connection, session_id, source, parent_session_id, relation)
                row = {"id": session_id, "source": source, "user_id": user, "started_at": start, **lineage}
                insert_session(self._engine, connection, row | end | fields)
            else:
                _fill_empty(self._engine, connection, session_id, fields)
            if title is not None and (is_new or _value(connection, session_id, "title") is None):
                self._titles.claim_title(connection, session_id, clean["title"])
            count_redactions(connection, redacted)
        return session_id

    def _is_free(self, connection: Connection, session_id: StoredName) -> bool:
        """Whether no session has this id; raises TakenSessionError if one out of scope has it."""
        existing = connection.execute("SELECT user_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if existing is not None and not self._scope.covers(existing[0]):
            raise TakenSessionError(f"The session id {session_id!r} is taken.")
        return existing is None

    def get_session(self, session_id: str) -> Row | None:
        """Every column of a session, decoded; None if it does not exist."""
        session_id = self._stored_name(session_id)
        statement = f"SELECT {SELECTED} FROM sessions WHERE id = ? AND {self._in_scope}"
        (rows,) = self._read_at_once((statement, (session_id, *self._scope.values)))
        return decode_session(rows[0]) if rows else None

    def resolve_session_id(self, id_or_prefix: str) -> str | None:
        """The session with that id, or the only session with an id that starts with it."""
        id_or_prefix = self._stored_name(id_or_prefix)
        escaped = id_or_prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        with self._engine.reading() as connection:
            if self._exists(connection, id_or_prefix):
                return id_or_prefix
            rows = connection.execute(
                f"SELECT id FROM sessions WHERE {self._dialect.like('id')} AND {self._in_scope} LIMIT 2",
                (f"{escaped}%", *self._scope.values),
            ).fetchall()
        return str(rows[0][0]) if len(rows) == 1 and id_or_prefix else None

    def ids_starting_with(self, prefix: str, limit: int) -> list[str]:
        """The ids that start with a prefix, those of the latest sessions first."""
        prefix = self._stored_name(prefix)
        escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = self._fetch_all(
            f"SELECT id FROM sessions WHERE {self._dialect.like('id')} AND {self._in_scope} "
            "ORDER BY started_at DESC, id LIMIT ?",
            (f"{escaped}%", *self._scope.values, limit),
        )
        return [str(row[0]) for row in rows] if prefix else []

    def lock_turn(self, session_id: str, timeout: float) -> HeldLock:
        """Let no other thread or process lock a turn of the conversation until the result is released or dropped.

        The session may be new. Raises SessionBusyError when another turn holds the lock for more than `timeout`
        seconds. Nothing else needs this lock: it orders whole turns, and each write is safe without it.
        """
        session_id = self._stored_name(session_id)
        row = self._fetch_one("SELECT conversation_id FROM sessions WHERE id = ?", (session_id,))
        try:
            return self._engine.lock_turn(session_id if row is None else row[0], timeout)
        except LockTimeoutError as error:
            raise SessionBusyError(
                f"Another turn of session {session_id!r} is in progress and did not end within {timeout:g} s. Nothing "
                "of this one was recorded. Send the message again when that turn has ended."
            ) from error

    def end_session(self, session_id: str, end_reason: str, ended_at: float | None = None) -> bool:
        """End a session, now or at another time, and keep the first reason. False if it had already ended."""
        session_id = self._stored_name(session_id)
        reason, redacted = self._redact(end_reason)
        require_storable("end_reason", reason)
        values = (time.time() if ended_at is None else ended_at, reason)
        return self._update(session_id, "ended_at = ?, end_reason = ?", values, "ended_at IS NULL", redacted)

    def reopen_session(self, session_id: str) -> bool:
        """Reopen an ended session. False if it was open or has a continuation."""
        session_id = self._stored_name(session_id)
        return self._update(
            session_id, "ended_at = NULL, end_reason = NULL", (), "ended_at IS NOT NULL AND successor_id IS NULL"
        )

    def update_session(self, /, session_id: str, **fields: Any) -> bool:
        """Set model, model_config, system_prompt, project or a billing field; False if there is nothing to set."""
        session_id = self._stored_name(session_id)
        unknown_fields = [name for name in fields if name not in _SETTABLE]
        if unknown_fields:
            raise SessionError(f"{', '.join(unknown_fields)} cannot be set; {', '.join(_SETTABLE)} can.")
        clean, redacted = self._redact({name: value for name, value in fields.items() if name != "project"})
        clean |= {name: self._stored_name(value) for name, value in fields.items() if name == "project"}
        values = {name: dump_json(value) if name == "model_config" else value for name, value in clean.items()}
        for name, value in values.items():
            require_storable(name, value)
        with self._engine.writing() as connection:
            self._require(connection, session_id)
            updated = update_columns(self._engine, connection, session_id, values)
            count_redactions(connection, redacted)
            if "project" in values:
                # Search filters by project, so followers must see the change.
                note_change(connection, session_id)
        return bool(updated and fields)

    def set_extra_fields(self, /, session_id: str, **fields: Any) -> None:
        """Set fields of a session that have no column, such as those that `create_session` also accepts."""
        session_id = self._stored_name(session_id)
        check_extra_fields(fields)
        clean, redacted = self._redact(fields)
        with self._changing(session_id) as connection:
            merge_extra_fields(connection, session_id, clean)
            count_redactions(connection, redacted)

    def set_session_archived(self, session_id: str, archived: bool) -> bool:
        """Archive a whole conversation, which removes it from lists, or restore it. False if it does not exist."""
        session_id = self._stored_name(session_id)
        with self._engine.writing() as connection:
            return bool(
                connection.execute(
                    "UPDATE sessions SET archived = ? WHERE conversation_id ="
                    f" (SELECT conversation_id FROM sessions WHERE id = ? AND {self._in_scope}) AND {self._in_scope}",
                    (int(archived), session_id, *self._scope.values, *self._scope.values),
                ).rowcount
            )

    def _update(
        self,
        session_id: StoredName,
        assignments: str,
        values: tuple[Any, ...],
        condition: str,
        redacted: int = 0,
    ) -> bool:
        with self._engine.writing() as connection:
            self._require(connection, session_id)
            changed = connection.execute(
                f"UPDATE sessions SET {assignments} WHERE id = ? AND {condition}", (*values, session_id)
            ).rowcount
            count_redactions(connection, redacted)
            return bool(changed)

    def own_user(self, user_id: str | None) -> str | None:
        """The user of a new session; raises SessionError if this store is open for another user.

        A new user id must contain no credential: it is also the name of a directory, and decides who sees what.
        """
        user = user_id if self._scope.all else self._scope.user
        if user is not None and self._stored_name(user) != user and not self._has_user(user):
            raise SessionError(f"A user id must not contain a credential ({self._stored_name(user)}). Choose another.")
        if self._scope.all:
            return user_id
        if user_id is not None and user_id != self._scope.user:
            owner = "the home's own user" if self._scope.user is None else repr(self._scope.user)
            raise SessionError(f"This store is open for {owner}, not for {user_id!r}.")
        return self._scope.user

    def _has_user(self, user_id: str) -> bool:
        row = self._fetch_one("SELECT 1 FROM sessions WHERE user_id = ? LIMIT 1", (user_id,))
        return row is not None

    def lineage_columns(
        self,
        connection: Connection,
        session_id: StoredName,
        source: str,
        parent_id: StoredName | None,
        relation: str | None,
    ) -> Row:
        """The columns that link a new session to others; updates the row of a parent that it continues."""
        if parent_id is None:
            return {"parent_session_id": None, "relation": None, "conversation_id": session_id}
        parent = connection.execute(
            f"SELECT end_reason, source, conversation_id, successor_id FROM sessions WHERE id = ? AND {self._in_scope}",
            (parent_id, *self._scope.values),
        ).fetchone()
        if parent is None:
            raise unknown_session(parent_id)
        end_reason, parent_source, conversation, successor = parent
        if relation is None:
            # Delegated work that was compressed continues as the same work; with another source it is new work.
            inherits = source == parent_source or source not in _DELEGATE_SOURCES
            relation = _BY_END_REASON.get(end_reason, "delegation") if inherits else "delegation"
        continues = relation == "compression" and successor is None
        if continues:
            connection.execute("UPDATE sessions SET successor_id = ? WHERE id = ?", (session_id, parent_id))
            note_change(connection, parent_id)
        return {
            "parent_session_id": parent_id,
            # A second continuation of the same session is a branch.
            "relation": "branch" if relation == "compression" and not continues else relation,
            "conversation_id": conversation if continues else session_id,
        }


def check_new(session_id: Any, source: Any, user_id: Any) -> None:
    """Raise SessionError unless a session can have this id, source and user."""
    if not session_id or not source:
        raise SessionError("A session needs an id and a source.")
    for name, value in (("session_id", session_id), ("source", source), ("user_id", user_id)):
        require_storable(name, value)
    if len(session_id) > _MAX_ID_CHARS:
        raise SessionError(f"A session id may have at most {_MAX_ID_CHARS} characters; this one has {len(session_id)}.")
    if user_id == "":
        raise SessionError("A user id must not be empty.")


def _marked_relation(model_config: Mapping[str, Any] | None) -> str | None:
    marks = [relation for mark, relation in _MARKS.items() if (model_config or {}).get(mark)]
    return marks[0] if marks else None


def _check_fields(relation: str | None, extra: Mapping[str, Any]) -> None:
    if relation is not None and relation not in RELATIONS:
        raise SessionError(f"relation must be one of {', '.join(RELATIONS)}, not {relation!r}.")
    check_extra_fields(extra)


def merge_extra_fields(connection: Connection, session_id: str, fields: Mapping[str, Any]) -> None:
    """Set redacted extra fields of a session that the transaction has locked."""
    extra = decode_json(_value(connection, session_id, "extra") or "{}") | fields
    connection.execute("UPDATE sessions SET extra = ? WHERE id = ?", (dump_json(extra), session_id))


def check_extra_fields(extra: Mapping[str, Any]) -> None:
    """Raise SessionError for a name that is a column, or has a meaning in an export."""
    reserved = sorted(name for name in extra if name in COLUMNS or name in ("messages", TODOS))
    if reserved:
        raise SessionError(f"{', '.join(reserved)} cannot be set as extra fields of a session.")


def decode_session(row: Any) -> Row:
    """Turn a row of the sessions table into a dict, with JSON decoded and extra fields merged in."""
    session = dict(zip(COLUMNS, row, strict=True))
    if session["model_config"] is not None:
        session["model_config"] = decode_json(session["model_config"])
    extra = session.pop("extra")
    return session if extra is None else decode_json(extra) | session


def insert_session(engine: Engine, connection: Connection, values: Row) -> None:
    """Insert the row of a session without messages; raises TakenSessionError if another user has the id."""
    start = values["started_at"]
    values = values | store_prompt(engine, connection, values.get("user_id"), values.get("system_prompt"))
    row = {name: value for name, value in values.items() if value is not None}
    row |= {"last_active": start, "active_hour": hour_of(start)}
    added = connection.execute(
        f"INSERT INTO sessions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) ON CONFLICT (id) DO NOTHING",
        tuple(row.values()),
    )
    if not added.rowcount:
        # The caller has found none with this id, and a server may hide those of other users.
        raise TakenSessionError(f"The session id {values['id']!r} is taken.")


def _fill_empty(engine: Engine, connection: Connection, session_id: str, fields: Row) -> None:
    if fields["project"] is not None and _value(connection, session_id, "project") is None:
        note_change(connection, session_id)
    given = {name: value for name, value in fields.items() if value is not None}
    new = {name: value for name, value in given.items() if _value(connection, session_id, select_list([name])) is None}
    if new:
        update_columns(engine, connection, session_id, new)


def _value(connection: Connection, session_id: str, name: str) -> Any:
    return connection.execute(f"SELECT {name} FROM sessions WHERE id = ?", (session_id,)).fetchone()[0]
