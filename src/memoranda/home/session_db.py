"""`SessionDB`: sessions, messages and search in one object, with the method names that its users know.

The methods belong to the parts of `SessionStore`; here each is one line that names its part. Those that record messages
refuse unknown roles first. Code inside Memoranda that needs one part uses the part itself.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from memoranda.home.config import locate_home
from memoranda.memory.record.checksums import StoredChecksums
from memoranda.memory.record.conversations import Conversations
from memoranda.memory.record.deletion import Deletion
from memoranda.memory.record.feed import Feed
from memoranda.memory.record.maintenance import Maintenance, ScheduledPrune
from memoranda.memory.record.message_edits import MessageEdits, MessageReplacement
from memoranda.memory.record.message_rows import require_known_role, require_messages
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.record import open_record
from memoranda.memory.record.rotation import Rotation
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.session_list import Lineage, SessionList, SessionUsage
from memoranda.memory.record.sessions import Sessions, Titles, Todos
from memoranda.memory.record.transfer.sessions import Transfer
from memoranda.safety.redaction import Redactor
from memoranda.search.searchable_store import SearchableStore, StoreIndex
from memoranda.storage.engine import Engine
from memoranda.support.durable_files import make_private_directory
from memoranda.support.home import index_path, is_server_url, server_index_path

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Delegate(Generic[_P, _R]):
    """A method of `SessionDB` that calls the method of the same name on one of the store's parts."""

    def __init__(self, part: str, method: Callable[Concatenate[Any, _P], _R]) -> None:
        self._part = part
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, db: None, owner: type) -> Callable[Concatenate[Any, _P], _R]: ...
    @overload
    def __get__(self, db: "SessionDB", owner: type) -> Callable[_P, _R]: ...
    def __get__(self, db: "SessionDB | None", owner: type) -> Callable[..., _R]:
        if db is None:
            return self._method
        # Stored in the object, so that the next call finds it there.
        bound: Callable[_P, _R] = self._method.__get__(getattr(db, self._part))
        db.__dict__[self._name] = bound
        return bound


class SessionDB(SearchableStore):
    """Sessions and messages in `state.db`, found through an index that can be deleted at any time."""

    def __init__(
        self,
        db_path: Path | str | None = None,
        *,
        redactor: Redactor | None = None,
        wait: float = 10.0,
        index_directory: Path | None = None,
        user_index_mb: int = 0,
    ) -> None:
        """Open the database, or create it; by default that of the default home.

        `db_path` is the path of a SQLite file, or the URL of a PostgreSQL server; then `index_directory` is where this
        node keeps its index, by default the default home. With `user_index_mb` every user of the server has an index
        file of their own there, all together of at most that size. `wait` is how many seconds a write waits for other
        writers.
        """
        if db_path is None:
            db_path = locate_home().state_db
        engine = open_record(db_path, wait=wait)
        if is_server_url(db_path):
            directory = index_directory or locate_home().root
            make_private_directory(directory)
            index = server_index_path(directory, db_path)
        else:
            index, user_index_mb = index_path(Path(db_path)), 0
        super().__init__(engine, StoreIndex(index, engine, user_index_mb=user_index_mb), redactor=redactor)

    @classmethod
    def over(
        cls, engine: Engine, index: StoreIndex, scope: Scope | None = None, *, redactor: Redactor | None = None
    ) -> "SessionDB":
        """Use an engine that is already open."""
        db = cls.__new__(cls)
        SearchableStore.__init__(db, engine, index, scope, redactor=redactor)
        return db

    def scoped(self, scope: Scope) -> "SessionDB":
        """Return the same database for another scope; closing the original closes it too."""
        return self.over(self.engine, self._store_index, scope, redactor=self._redactor)

    @property
    def path(self) -> Path:
        return Path(self.engine.location)

    @property
    def journal(self) -> str:
        return self.maintenance.journal

    @property
    def read_only(self) -> bool:
        return self.maintenance.read_only

    def append_message(self, /, session_id: str, role: str, content: Any = None, **fields: Any) -> int:
        """Append one message and return its id; the message is durable by then.

        `fields` are columns of the messages table (tool_name, tool_calls, tool_call_id, token_count, finish_reason,
        reasoning, timestamp, external_id …); the store also keeps any others. If the session already has a message with
        this external_id, nothing is added and the id of that message is returned. Raises SessionError for an unknown
        role.
        """
        require_known_role(role)
        return self.messages.append_message(session_id, role, content, **fields)

    def append_messages(
        self,
        session_id: str,
        messages: Iterable[Mapping[str, Any]],
        *,
        fail_if_continued: bool = False,
        last_seen: int | None = None,
    ) -> list[int]:
        """Append several messages in one transaction: all of them or none.

        With `fail_if_continued` the store records nothing in a session that was compressed and raises ContinuedError,
        which names the continuation. With `last_seen`, the id of the last message that the caller has read (0 for
        none), it records nothing if the session has a newer one by now and raises SessionChangedError. Raises
        SessionError for an unknown role.
        """
        return self.messages.append_messages(
            session_id, require_messages(messages), fail_if_continued=fail_if_continued, last_seen=last_seen
        )

    def replace_messages(
        self,
        session_id: str,
        messages: Iterable[Mapping[str, Any]],
        *,
        last_seen: int | None = None,
        extra_fields: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Replace the messages in a session's context with others, all of them or none, and return the new ids.

        With `last_seen`, the id of the last message that the caller has read (0 for none), nothing is replaced if the
        session has a newer one by now: SessionChangedError. `restore_replaced` undoes it. Only the latest session of a
        conversation can be changed: ContinuedError names the continuation of any other. `extra_fields` are fields of
        the session to set in the same transaction, as `set_extra_fields` does; undoing does not change them. Raises
        SessionError for an unknown role.
        """
        return self.replacement.replace_messages(
            session_id, require_messages(messages), last_seen=last_seen, extra_fields=extra_fields
        )

    create_session = _Delegate("sessions", Sessions.create_session)
    get_session = _Delegate("sessions", Sessions.get_session)
    resolve_session_id = _Delegate("sessions", Sessions.resolve_session_id)
    end_session = _Delegate("sessions", Sessions.end_session)
    reopen_session = _Delegate("sessions", Sessions.reopen_session)
    update_session = _Delegate("sessions", Sessions.update_session)
    set_extra_fields = _Delegate("sessions", Sessions.set_extra_fields)
    lock_turn = _Delegate("sessions", Sessions.lock_turn)
    set_session_archived = _Delegate("sessions", Sessions.set_session_archived)
    get_messages = _Delegate("messages", Messages.get_messages)
    get_messages_as_conversation = _Delegate("messages", Messages.get_messages_as_conversation)
    get_message = _Delegate("messages", Messages.get_message)
    get_messages_with = _Delegate("messages", Messages.get_messages_with)
    last_message_id = _Delegate("messages", Messages.last_message_id)
    get_external_ids = _Delegate("messages", Messages.get_external_ids)
    live_message_ids = _Delegate("messages", Messages.live_message_ids)
    rewind_to_message = _Delegate("edits", MessageEdits.rewind_to_message)
    restore_rewound = _Delegate("edits", MessageEdits.restore_rewound)
    pop_message = _Delegate("edits", MessageEdits.pop_message)
    restore_replaced = _Delegate("replacement", MessageReplacement.restore_replaced)
    archive_and_compact = _Delegate("edits", MessageEdits.archive_and_compact)
    clear_messages = _Delegate("edits", MessageEdits.clear_messages)
    live_context = _Delegate("rotation", Rotation.live_context)
    take_compression_lease = _Delegate("rotation", Rotation.take_compression_lease)
    release_compression_lease = _Delegate("rotation", Rotation.release_compression_lease)
    rotate_session = _Delegate("rotation", Rotation.rotate_session)
    branch_session = _Delegate("rotation", Rotation.branch_session)
    compression_notes = _Delegate("rotation", Rotation.compression_notes)
    note_compression = _Delegate("rotation", Rotation.note_compression)
    conversation_todos = _Delegate("todos", Todos.conversation_todos)
    save_conversation_todos = _Delegate("todos", Todos.save_conversation_todos)
    get_compression_tip = _Delegate("lineage", Lineage.get_compression_tip)
    get_compression_lineage = _Delegate("lineage", Lineage.get_compression_lineage)
    get_conversation_root = _Delegate("lineage", Lineage.get_conversation_root)
    get_ancestors = _Delegate("lineage", Lineage.get_ancestors)
    get_descendants = _Delegate("lineage", Lineage.get_descendants)
    set_session_title = _Delegate("titles", Titles.set_session_title)
    get_session_title = _Delegate("titles", Titles.get_session_title)
    list_titled = _Delegate("titles", Titles.list_titled)
    resolve_session_by_title = _Delegate("titles", Titles.resolve_session_by_title)
    get_next_title_in_lineage = _Delegate("titles", Titles.get_next_title_in_lineage)
    list_sessions_rich = _Delegate("listing", SessionList.list_sessions_rich)
    list_sessions_with_prefix = _Delegate("listing", SessionList.list_sessions_with_prefix)
    search_sessions_by_id = _Delegate("listing", SessionList.search_sessions_by_id)
    known_projects = _Delegate("listing", SessionList.known_projects)
    session_count = _Delegate("listing", SessionList.session_count)
    one_view = _Delegate("conversations", Conversations.one_view)
    conversation_of = _Delegate("conversations", Conversations.conversation_of)
    window_around = _Delegate("conversations", Conversations.window_around)
    messages_behind = _Delegate("conversations", Conversations.messages_behind)
    ends_of = _Delegate("conversations", Conversations.ends_of)
    update_token_counts = _Delegate("usage", SessionUsage.update_token_counts)
    statistics = _Delegate("usage", SessionUsage.statistics)
    get_meta = _Delegate("usage", SessionUsage.get_meta)
    set_meta = _Delegate("usage", SessionUsage.set_meta)
    delete_session = _Delegate("deletion", Deletion.delete_session)
    list_deletion = _Delegate("deletion", Deletion.list_deletion)
    delete_sessions = _Delegate("deletion", Deletion.delete_sessions)
    deleted_sessions = _Delegate("deletion", Deletion.deleted_sessions)
    list_prune_candidates = _Delegate("deletion", Deletion.list_prune_candidates)
    prune_sessions = _Delegate("deletion", Deletion.prune_sessions)
    archive_sessions = _Delegate("deletion", Deletion.archive_sessions)
    count_empty_sessions = _Delegate("deletion", Deletion.count_empty_sessions)
    delete_empty_sessions = _Delegate("deletion", Deletion.delete_empty_sessions)
    prune_when_due = _Delegate("scheduled_prune", ScheduledPrune.prune_when_due)
    last_prune = _Delegate("scheduled_prune", ScheduledPrune.last_prune)
    empty_log = _Delegate("deletion", Deletion.empty_log)
    release_space = _Delegate("deletion", Deletion.release_space)
    vacuum = _Delegate("deletion", Deletion.vacuum)
    export_session = _Delegate("transfer", Transfer.export_session)
    export_all = _Delegate("transfer", Transfer.export_all)
    iter_export = _Delegate("transfer", Transfer.iter_export)
    import_sessions = _Delegate("transfer", Transfer.import_sessions)
    check_integrity = _Delegate("maintenance", Maintenance.check_integrity)
    miscounted_sessions = _Delegate("maintenance", Maintenance.miscounted_sessions)
    recount_sessions = _Delegate("maintenance", Maintenance.recount_sessions)
    lost_repetitions = _Delegate("maintenance", Maintenance.lost_repetitions)
    give_up_lost_repetitions = _Delegate("maintenance", Maintenance.give_up_lost_repetitions)
    take_rows = _Delegate("maintenance", Maintenance.take_rows)
    damaged_messages = _Delegate("checksums", StoredChecksums.damaged_messages)
    fill_checksums = _Delegate("checksums", StoredChecksums.fill_checksums)
    store_id = _Delegate("feed", Feed.store_id)
    head = _Delegate("feed", Feed.head)
    mark = _Delegate("feed", Feed.mark)
    mark_of = _Delegate("feed", Feed.mark_of)
    messages_after = _Delegate("feed", Feed.messages_after)
    messages_from = _Delegate("feed", Feed.messages_from)
    sample_messages = _Delegate("feed", Feed.sample_messages)
    messages_by_id = _Delegate("feed", Feed.messages_by_id)
    messages_like = _Delegate("feed", Feed.messages_like)
    messages_beyond_ascii = _Delegate("feed", Feed.messages_beyond_ascii)
    changes_after = _Delegate("feed", Feed.changes_after)
    feed_sessions = _Delegate("feed", Feed.feed_sessions)
