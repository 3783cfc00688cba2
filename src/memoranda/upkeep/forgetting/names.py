"""Replaces names with credentials everywhere in a home that an earlier version wrote: record, queues, states, logs."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from pathlib import Path

from memoranda.external.outbox.jobs import resealed_jobs
from memoranda.external.outbox.schema import FILE_NAME as OUTBOX
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.passages import NameRepair
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
from memoranda.safety.redaction import Redactor
from memoranda.storage.orphaned_wal import database_exists
from memoranda.support.home import Home, remove_vectors
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.byte_search import search_home
from memoranda.upkeep.forgetting.home_files import COMPANIONS, HomeFiles, is_database, walk
from memoranda.upkeep.forgetting.scope import ForgetScope

_BUSY_TIMEOUT = 10.0


def find_names(home: Home, redactor: Redactor, *, in_messages: bool) -> dict[str, str]:
    """The ids, sources and projects in a home's record that contain a credential, each with its replacement."""
    if not database_exists(home.state_db):
        return {}
    with open_store(home.state_db) as store:
        return NameRepair(store.engine, Scope.everyone(), redactor).find_names(in_messages=in_messages)


def replace_names(home: Home, redactor: Redactor) -> str:
    """Replace them everywhere; says how many there were, and which files still have one.

    The record comes last: it says which names there are, so a run that was killed before is repeated.
    """
    with SessionDB(home.state_db) as db:
        repair = NameRepair(db.engine, Scope.everyone(), redactor)
        names = repair.find_names(in_messages=True)
        if not names:
            return "there is nothing to replace any more"
        for path in _other_databases(home.root):
            _replace_in_database(path, names)
        matcher = TextMatcher(names)
        problems = HomeFiles(ForgetScope(home), ("logs", "reports")).forget(matcher)
        repair.replace_names()
        remove_vectors(home.state_db)
        db.index.compact()
        db.engine.vacuum()
        db.empty_log()
    left = sorted(search_home(home.root, matcher.texts).found)
    report = f"replaced {len(names):,} names"
    if left or problems:
        shown = "; ".join([*problems, *(f"{name} still has one" for name in left)])
        report += f"; {shown}: 'memoranda forget' with the credential removes it there"
    return report


def _other_databases(root: Path) -> Iterator[Path]:
    """The databases of a profile beside the record and its index."""
    for path in walk(root):
        name = path.relative_to(root).as_posix()
        is_other = name.startswith(("state.", "profiles/")) or name.endswith(COMPANIONS) or ".damaged-" in name
        if not is_other and is_database(path):
            yield path


def _replace_in_database(path: Path, names: Mapping[str, str]) -> None:
    """Replace the names in every text of every table, also within other text."""
    with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete=1")
        connection.execute("BEGIN IMMEDIATE")
        with resealed_jobs(connection) if path.name == OUTBOX else nullcontext():
            for table, column in _text_columns(connection):
                for old, new in names.items():
                    # A row that would repeat another one's key stays, and is reported.
                    connection.execute(
                        f"UPDATE OR IGNORE {table} SET {column} = replace({column}, ?, ?) WHERE instr({column}, ?) > 0",
                        (old, new, old),
                    )
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _text_columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    found = []
    for _, name, kind, *_ in connection.execute("PRAGMA table_list").fetchall():
        if kind == "table" and not name.startswith("sqlite_"):
            table = '"' + name.replace('"', '""') + '"'
            columns = [row[1:3] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]
            found += [(table, f'"{column}"') for column, declared in columns if declared.upper() == "TEXT"]
    return found
