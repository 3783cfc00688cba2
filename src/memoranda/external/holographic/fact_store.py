"""The facts of one user: rows that are durable when a call returns, and a cache on this machine that can find them.

A change is made in the rows, in `home.db` or on a server. The cache, with words, links and vectors, follows them, as
the search index follows the record: before anything is read, it takes over what has changed since. It may be lost or
damaged at any time, and is filled again. Adding a fact takes the same time however many there are: it writes only the
fact's words, links and vector. A vector of another dimension is encoded again when it is next used.
"""

import hashlib
import logging
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import CorruptStoreError, StorageError
from memoranda.external.holographic.algebra import Vector, pack, sketch, unpack
from memoranda.external.holographic.encoding import MAX_ENTITIES, Encoder
from memoranda.external.holographic.entities import (
    Entity,
    drop_unused,
    entities_of,
    find_entities,
    key_of,
    known_keys,
    link,
)
from memoranda.external.holographic.schema import APPLICATION_ID, CACHE_SCHEMA, EMPTY
from memoranda.external.holographic.shared_facts import (
    EVERYTHING,
    NAMES,
    OF_HOME,
    FactChanges,
    SharedFact,
    SharedFacts,
    cache_path,
)
from memoranda.external.holographic.word_index import erase_words, forget_words, store_words
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection as AnyConnection
from memoranda.storage.engine import Condition
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.sqlite.database import Connection, Database
from memoranda.storage.sqlite.engine import SqliteEngine, open_sqlite_engine
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.durable_files import make_private_directory
from memoranda.support.home import remove_file
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

CATEGORIES = ("user_pref", "project", "tool", "general")
_COLUMNS = (
    "fact_id, content, category, tags, trust_score, retrieval_count, helpful_count, created_at, updated_at,"
    " session_id, message, written_by, mirror_of"
)

MAX_CONTENT_CHARS = 4000
HELPFUL, UNHELPFUL = 0.05, -0.10
_ENCODE_BATCH = 100
_READ_BATCH = 500
_CLEAN_INTERVAL = 50
_LOCK_TIMEOUT = 10.0
_REVISION, _STORE = "server_revision", "server_store"
# Which values the words, links and vectors of a fact are derived from.
_CONTENT = ("content", "tags", "mirror_of")


class FactError(StorageError, ValueError):
    """A request that cannot be fulfilled: an unknown fact, an empty text, or the text of another fact."""


class Provenance(NamedTuple):
    """The origin of a fact."""

    session_id: str = ""
    message: str = ""
    written_by: str = ""


UNKNOWN = Provenance()


@dataclass(frozen=True, slots=True)
class Fact:
    fact_id: int
    content: str
    category: str
    tags: tuple[str, ...]
    trust: float
    retrieval_count: int
    helpful_count: int
    created_at: float
    updated_at: float
    provenance: Provenance
    mirror_of: str
    entities: tuple[str, ...] = ()

    def decay(self, now: float, half_life_days: float) -> float:
        """The factor by which its age lowers its score."""
        if half_life_days <= 0:
            return 1.0
        return float(0.5 ** (max(0.0, now - self.updated_at) / 86_400 / half_life_days))

    def as_data(self) -> dict[str, Any]:
        return {
            "fact_id": self.fact_id,
            "content": self.content,
            "category": self.category,
            "tags": ",".join(self.tags),
            "entities": list(self.entities),
            "trust_score": round(self.trust, 4),
            "retrieval_count": self.retrieval_count,
            "helpful_count": self.helpful_count,
            "created_at": _format_timestamp(self.created_at),
            "updated_at": _format_timestamp(self.updated_at),
            "provenance": self.provenance._asdict(),
        }


def _fact_from_row(row: tuple[Any, ...], entities: tuple[str, ...]) -> Fact:
    tags = tuple(tag for tag in row[3].split(",") if tag)
    fact_id, content, category, _, trust, retrieved, helpful, created, updated, session, message, by, mirror_of = row
    origin = Provenance(session, message, by)
    return Fact(
        fact_id, content, category, tags, trust, retrieved, helpful, created, updated, origin, mirror_of, entities
    )


def content_key(content: str) -> str:
    """A digest that ignores case, width, spaces and the final punctuation mark."""
    plain = " ".join(unicodedata.normalize("NFKC", content).casefold().split()).rstrip(" .!。！")
    return hashlib.sha256(plain.encode()).hexdigest()


def read_state(connection: Connection) -> tuple[int, str]:
    """The last change that a cache has, and of which store; 0 and "" for a new one."""
    return int(read_meta(connection, _REVISION) or 0), read_meta(connection, _STORE) or ""


def _format_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class FactStore:
    """All facts of one user; "" is the home's owner."""

    def __init__(
        self,
        home: Path,
        user: str = "",
        server_url: str = "",
        *,
        dimension: int = 1024,
        default_trust: float = 0.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`server_url` names the server that has the rows, if they are not in the home."""
        self.encoder = Encoder(dimension)
        self.clock = clock
        self._default_trust = default_trust
        self._redactor = Redactor()
        self._removed = 0
        path = cache_path(home, user)
        make_private_directory(path.parent)
        self._lock_path = path.with_suffix(".lock")
        self._shared = SharedFacts(home, user, server_url)
        try:
            self.database = self._open_cache(path)
        except BaseException:
            self._shared.close()
            raise

    def close(self) -> None:
        self._shared.close()
        self.database.close()

    def refresh(self) -> None:
        """Let the cache take over what has changed in the rows."""
        if not self.database.path.exists():
            # Another process has deleted it, because facts were removed elsewhere.
            self.database.close()
            self.database = self._open_cache(self.database.path)
        if self.database.read_only or self._is_current():
            return
        # No other process or thread of this machine fills the cache meanwhile.
        with FileLock(self._lock_path, _LOCK_TIMEOUT):
            with self.database.reading() as connection:
                revision, store = read_state(connection)
            changes = self._shared.read_after(revision)
            if changes.store != store and store.startswith(OF_HOME) and self._shared.in_home:
                self._put_back()
            if changes.store != store or changes.revision < revision:
                self._fill(self._shared.read_after(EVERYTHING))
            elif changes.revision != revision:
                self._apply(changes)

    def add(
        self,
        content: str,
        *,
        category: str = "general",
        tags: Iterable[str] = (),
        entities: Sequence[str] | None = None,
        provenance: Provenance = UNKNOWN,
        mirror_of: str = "",
    ) -> tuple[Fact, bool]:
        """Stores a fact and returns it with True; if one with the same text exists, returns that with False.

        Without `entities` the store finds them in the text.
        """
        content = self._check_content(content)
        _check_category(category)
        values = self._new_values(content) | provenance._asdict()
        values |= {"category": category, "tags": _join_tags(tags), "mirror_of": mirror_of}
        with self._shared.changing() as connection:
            existing = self._shared.find(connection, values["content_key"])
            fact_id = existing or self._shared.next_number(connection)
            if existing is None:
                self._shared.write(connection, SharedFact(fact_id, values, entities))
        return self._changed(fact_id), existing is None

    def update(
        self,
        fact_id: int,
        *,
        content: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        entities: Sequence[str] | None = None,
        trust_delta: float = 0.0,
    ) -> Fact:
        """Changes the fields of a fact that are not None. Raises FactError for an unknown fact, or a duplicate text."""
        if category is not None:
            _check_category(category)
        content = None if content is None else self._check_content(content)
        with self._shared.changing() as connection:
            values = self._require_values(connection, fact_id)
            changed = content is not None and content != values["content"]
            if content is not None:
                other = self._shared.find(connection, content_key(content))
                if other not in (None, fact_id):
                    raise FactError(f"Fact {other} already says that. Remove fact {fact_id} if it is outdated.")
                values |= {"content": content, "content_key": content_key(content)}
            values["category"] = category or values["category"]
            values["tags"] = values["tags"] if tags is None else _join_tags(tags)
            values["trust_score"] = _clamp_trust(values["trust_score"] + trust_delta)
            values["updated_at"] = self.clock() if changed else values["updated_at"]
            forget_names = changed and entities is None
            self._shared.write(connection, SharedFact(fact_id, values, entities, forget_names))
        return self._changed(fact_id)

    def put(self, key: str, values: Mapping[str, Any], entities: Sequence[str] | None) -> None:
        """Add a fact, or give the one with this key these values of columns; raises FactError for another key."""
        if content_key(self._check_content(values["content"])) != key:
            raise FactError("It contains a secret, and is not stored.")
        _check_category(values["category"])
        with self._shared.changing() as connection:
            existing = self._shared.find(connection, key)
            fact_id = existing or self._shared.next_number(connection)
            stored = self._shared.get(connection, fact_id) or self._new_values(values["content"])
            fact = SharedFact(fact_id, {**stored, **values}, entities, forget_names=entities is None)
            self._shared.write(connection, fact)
        self.refresh()

    def remove(self, fact_id: int) -> bool:
        """Removes a fact; False if it does not exist."""
        with self._shared.changing() as connection:
            found = self._shared.get(connection, fact_id) is not None
            if found:
                self._shared.write(connection, SharedFact(fact_id, None))
        self.refresh()
        return found

    def erase_removed(self) -> bool:
        """Overwrite what removed facts left in the files: their names, their words, and the logs; False if a reader of
        another process still needs a log.
        """
        erased = self._shared.erase_removed()
        with self.database.writing() as connection:
            drop_unused(connection)
            erase_words(connection)
        self.database.release_space()
        return self.database.shrink_log() and erased

    def rate(self, fact_id: int, helpful: bool) -> tuple[float, Fact]:
        """Raises or lowers the trust of a fact; returns the trust before, and the fact."""
        with self._shared.changing() as connection:
            values = self._require_values(connection, fact_id)
            before = values["trust_score"]
            values["trust_score"] = _clamp_trust(before + (HELPFUL if helpful else UNHELPFUL))
            values["helpful_count"] += int(helpful)
            self._shared.write(connection, SharedFact(fact_id, values))
        return before, self._changed(fact_id)

    def all_rows(self) -> list[SharedFact]:
        return [fact for fact in self._shared.read_after(EVERYTHING).facts if fact.values is not None]

    def get(self, fact_id: int) -> Fact | None:
        return self.facts([fact_id]).get(fact_id)

    def list_facts(self, *, category: str | None = None, min_trust: float = 0.0, limit: int = 10) -> list[Fact]:
        """The newest facts first."""
        with self.database.reading() as connection:
            return _select(
                connection,
                "(? IS NULL OR category = ?) AND trust_score >= ? ORDER BY fact_id DESC LIMIT ?",
                (category, category, min_trust, limit),
            )

    def find_mirrored(self, target: str, text: str) -> list[Fact]:
        """The mirrored entries that contain this text; only the exact match if there is one."""
        with self.database.reading() as connection:
            found = _select(connection, "mirror_of = ? AND instr(content, ?) > 0", (target, text))
        return [fact for fact in found if fact.content == text] or found

    def facts(self, fact_ids: Sequence[int]) -> dict[int, Fact]:
        with self.database.reading() as connection:
            found = [fact for batch in _batches(fact_ids) for fact in _select(connection, *batch)]
        return {fact.fact_id: fact for fact in found}

    def vectors(self, fact_ids: Sequence[int]) -> dict[int, Vector]:
        with self.database.reading() as connection:
            return {
                fact_id: unpack(vector)
                for condition, values in _batches(fact_ids)
                for fact_id, vector in connection.execute(
                    f"SELECT fact_id, vector FROM vectors WHERE {condition}", values
                )
            }

    def count_retrieved(self, fact_ids: Iterable[int]) -> None:
        """Counts a retrieval of each of these facts."""
        numbers = [(fact_id,) for fact_id in fact_ids]
        if numbers:
            self._shared.count_retrieved([fact_id for (fact_id,) in numbers])
            with self.database.writing() as connection:
                connection.executemany(
                    "UPDATE facts SET retrieval_count = retrieval_count + 1 WHERE fact_id = ?", numbers
                )

    def encode_stale(self) -> int:
        """Encodes facts and names with an outdated encoding, in short transactions; returns the number of facts."""
        done = 0
        while not self.database.read_only:
            with self.database.reading() as connection:
                stale = _stale(connection, "facts", "fact_id", self.encoder.name)
                names = _stale(connection, "entities", "entity_id", self.encoder.name)
            if not stale and not names:
                return done
            with self.database.writing() as connection:
                for fact_id in stale:
                    self._encode(connection, fact_id)
                for entity_id in names:
                    self._encode_name(connection, entity_id)
            done += len(stale)
        return done

    def _check_content(self, content: str) -> str:
        content = content.strip()
        if not content:
            raise FactError("content is empty; state the fact in a sentence.")
        if len(content) > MAX_CONTENT_CHARS:
            raise FactError(f"content has {len(content)} characters; a fact has at most {MAX_CONTENT_CHARS}. Split it.")
        return self._redactor.text(content)[0]

    def _new_values(self, content: str) -> dict[str, Any]:
        now = self.clock()
        return EMPTY | {
            "content": content,
            "content_key": content_key(content),
            "trust_score": self._default_trust,
            "created_at": now,
            "updated_at": now,
        }

    def _require_values(self, connection: AnyConnection, fact_id: int) -> dict[str, Any]:
        values = self._shared.get(connection, fact_id)
        if values is None:
            raise FactError(f"There is no fact {fact_id}.")
        return dict(values)

    def _changed(self, fact_id: int) -> Fact:
        """A fact whose row has just been written, or was found."""
        self.refresh()
        fact = self.get(fact_id)
        if fact is None:
            raise FactError(f"There is no fact {fact_id}.")
        return fact

    def _open_cache(self, path: Path) -> Database:
        try:
            return open_sqlite_engine(path, CACHE_SCHEMA, APPLICATION_ID, durable=False)
        except CorruptStoreError as error:
            _log.warning("The cache of facts is damaged, and filled again: %s", error)
            with FileLock(self._lock_path, _LOCK_TIMEOUT):
                remove_file(path)
            return open_sqlite_engine(path, CACHE_SCHEMA, APPLICATION_ID, durable=False)

    def _is_current(self) -> bool:
        with self.database.reading() as connection:
            revision, store = read_state(connection)
        changes = self._shared.read_after(revision)
        return changes.store == store and changes.revision == revision

    def _put_back(self) -> None:
        """Put the facts of a `home.db` that was lost into the new one: the cache has the only copy on this machine."""
        with self.database.reading() as connection:
            rows = connection.execute(f"SELECT fact_id, {', '.join(NAMES)} FROM facts ORDER BY fact_id").fetchall()
            given: dict[int, list[str]] = {}
            for fact_id, name in connection.execute(
                "SELECT fact_id, name FROM fact_entities JOIN entities USING (entity_id) WHERE entity_type = 'given'"
            ):
                given.setdefault(fact_id, []).append(name)
        with self._shared.changing() as connection:
            for number, *columns in rows:
                values = dict(zip(NAMES, columns, strict=True))
                if self._shared.find(connection, values["content_key"]) is None:
                    is_free = self._shared.get(connection, number) is None
                    fact_id = number if is_free else self._shared.next_number(connection)
                    self._shared.write(connection, SharedFact(fact_id, values, given.get(number)))
        _log.warning("home.db was lost or replaced; %d facts were put back from their cache", len(rows))

    def _fill(self, changes: FactChanges) -> None:
        """Fill the cache with all facts, after it was found to be another store's."""
        wanted = {fact.fact_id for fact in changes.facts}
        with self.database.reading() as connection:
            known = [number for (number,) in connection.execute("SELECT fact_id FROM facts")]
        gone = [SharedFact(number, None) for number in known if number not in wanted]
        self._apply(changes._replace(facts=[*gone, *changes.facts]))

    def _apply(self, changes: FactChanges) -> None:
        with self.database.writing() as connection:
            for fact in changes.facts:
                # Facts may have exchanged their texts, which are unique.
                connection.execute(
                    "UPDATE facts SET content_key = 'moving:' || fact_id WHERE fact_id = ?", (fact.fact_id,)
                )
            for fact in changes.facts:
                if fact.values is None:
                    self._delete(connection, fact.fact_id)
                else:
                    self._apply_fact(connection, fact, fact.values)
            for key, value in ((_REVISION, str(changes.revision)), (_STORE, changes.store)):
                write_meta(connection, key, value)

    def _delete(self, connection: Connection, fact_id: int) -> None:
        for table in ("facts", "vectors", "meanings", "fact_entities"):
            connection.execute(f"DELETE FROM {table} WHERE fact_id = ?", (fact_id,))
        forget_words(connection, fact_id)
        self._removed += 1
        if self._removed % _CLEAN_INTERVAL == 1:
            drop_unused(connection)

    def _apply_fact(self, connection: Connection, fact: SharedFact, values: Mapping[str, Any]) -> None:
        before = connection.execute(
            f"SELECT {', '.join(_CONTENT)} FROM facts WHERE fact_id = ?", (fact.fact_id,)
        ).fetchone()
        changed = ", ".join(f"{name} = excluded.{name}" for name in NAMES)
        connection.execute(
            f"INSERT INTO facts (fact_id, {', '.join(NAMES)}) VALUES (?{', ?' * len(NAMES)})"
            f" ON CONFLICT (fact_id) DO UPDATE SET {changed}",
            (fact.fact_id, *(values[name] for name in NAMES)),
        )
        if fact.given_names is not None or before != tuple(values[name] for name in _CONTENT):
            self._write_derived(connection, fact.fact_id, fact.given_names)

    def _write_derived(self, connection: Connection, fact_id: int, names: Sequence[str] | None) -> None:
        """Writes the links, words and vector of a fact."""
        content, tags, mirror_of = connection.execute(
            "SELECT content, tags, mirror_of FROM facts WHERE fact_id = ?", (fact_id,)
        ).fetchone()
        if names is None:
            entities = find_entities(content, lambda keys: known_keys(connection, keys))
        else:
            entities = [Entity(name.strip(), "given") for name in names if key_of(name)]
        if mirror_of == "user":
            # Entries about the user seldom mention the user.
            entities = [Entity("user", "user"), *entities]
        link(connection, self.encoder, fact_id, entities[:MAX_ENTITIES], self.clock())
        store_words(connection, fact_id, content, tags.split(","))
        connection.execute("DELETE FROM meanings WHERE fact_id = ?", (fact_id,))
        self._encode(connection, fact_id)

    def _encode(self, connection: Connection, fact_id: int) -> None:
        row = connection.execute("SELECT content FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()
        if row is None:
            return
        keys = [known.key for known in entities_of(connection, [fact_id]).get(fact_id, [])]
        vector = self.encoder.fact(row[0], keys)
        connection.execute(
            "INSERT INTO vectors (fact_id, vector) VALUES (?, ?) ON CONFLICT (fact_id) DO UPDATE SET vector = ?",
            (fact_id, pack(vector), pack(vector)),
        )
        connection.execute(
            "UPDATE facts SET entity_count = ?, encoding = ?, sketch = ? WHERE fact_id = ?",
            (len(keys), self.encoder.name, sketch(vector), fact_id),
        )

    def _encode_name(self, connection: Connection, entity_id: int) -> None:
        row = connection.execute("SELECT name_key FROM entities WHERE entity_id = ?", (entity_id,)).fetchone()
        if row is not None:
            connection.execute(
                "UPDATE entities SET encoding = ?, sketch = ? WHERE entity_id = ?",
                (self.encoder.name, self.encoder.name_sketch(row[0]), entity_id),
            )


def _split_tags(tags: Iterable[str]) -> tuple[str, ...]:
    pieces = (piece.strip() for tag in tags for piece in tag.split(","))
    return tuple(dict.fromkeys(piece for piece in pieces if piece))


def _join_tags(tags: Iterable[str]) -> str:
    return ",".join(_split_tags(tags))


def _check_category(category: str) -> None:
    if category not in CATEGORIES:
        raise FactError(f"category must be one of {', '.join(CATEGORIES)}, not {category[:40]!r}.")


def _clamp_trust(trust: float) -> float:
    return round(min(1.0, max(0.0, trust)), 6)


def _stale(connection: Connection, table: str, number: str, encoding: str) -> list[int]:
    # SQLite uses the index for this condition, but not for "<>".
    rows = connection.execute(
        f"SELECT {number} FROM {table} WHERE encoding < ? OR encoding > ? LIMIT ?",
        (encoding, encoding, _ENCODE_BATCH),
    )
    return [row[0] for row in rows]


def _select(connection: Connection, condition: str, values: Sequence[Any]) -> list[Fact]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM facts WHERE {condition}", values).fetchall()
    entities = entities_of(connection, [row[0] for row in rows])
    return [_fact_from_row(row, tuple(known.name for known in entities.get(row[0], []))) for row in rows]


def _batches(fact_ids: Sequence[int]) -> Iterator[Condition]:
    """Conditions that together match these facts: SQLite accepts only so many values."""
    for start in range(0, len(fact_ids), _READ_BATCH):
        yield SqliteEngine.dialect.one_of("fact_id", fact_ids[start : start + _READ_BATCH])
