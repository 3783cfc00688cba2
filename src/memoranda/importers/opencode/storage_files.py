"""Reads sessions from the files of OpenCode before version 1.2: one file for each session, message and part."""

import os
from collections.abc import Iterator
from pathlib import Path

from memoranda.importers.opencode.messages import StoredMessage, StoredSession, message_from_info, session_from_info
from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_files import find_files, item_at, read_json_file, reread_time

_LABEL = "session"


def find_sessions(path: Path) -> list[ImportItem]:
    """Return an item for each session, with the total size and the latest change of its files."""
    found = [item for directory in _session_directories(path) for item in find_files(directory, _is_session, _LABEL)]
    # Session ids are made from the time, counted down, so the oldest session has the largest id.
    return [_measure(item) for item in sorted(found, key=lambda item: item.file.name, reverse=True)]


def read_session(item: ImportItem) -> Iterator[StoredSession | StoredMessage | Problem]:
    """Yield one session from its files."""
    info = read_json_file(item)
    if not isinstance(info, dict):
        yield info if isinstance(info, Problem) else Problem(item.file, None, "a JSON object is expected")
        return
    session = session_from_info(info, item.file.stem)
    yield session
    messages, parts = _message_directories(item.file)
    for message in _json_files(messages):
        value = read_json_file(message)
        if not isinstance(value, dict):
            yield value if isinstance(value, Problem) else Problem(message.file, None, "a JSON object is expected")
            continue
        message_parts = []
        for part in _json_files(parts / message.file.stem):
            entry = read_json_file(part)
            if isinstance(entry, dict):
                message_parts.append({"id": part.file.stem, **entry})
            else:
                yield entry if isinstance(entry, Problem) else Problem(part.file, None, "a JSON object is expected")
        yield message_from_info(value, message.file.stem, message_parts)


def _session_directories(path: Path) -> list[Path]:
    """Return the directories with the descriptions of sessions."""
    try:
        old = sorted((path / "project").glob("*/storage/session/info"))
    except OSError:
        old = []
    return [path / "storage" / "session", *old]


def _is_session(file: Path) -> bool:
    return file.suffix == ".json" and file.name.startswith("ses_")


def _message_directories(session: Path) -> tuple[Path, Path]:
    """Return the directory of the messages of a session, and the directory of their parts."""
    if session.parent.name == "info":
        storage = session.parent.parent
        return storage / "message" / session.stem, storage / "part" / session.stem
    storage = session.parent.parent.parent
    return storage / "message" / session.stem, storage / "part"


def _json_files(folder: Path) -> list[ImportItem]:
    """Return the files of a directory in the order of their names, which is the order of time."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return []
    found = [item_at(folder / name, _LABEL) for name in names]
    return [item for item in found if item is not None]


def _measure(session: ImportItem) -> ImportItem:
    messages, parts = _message_directories(session.file)
    size, modified_at = session.size, session.modified_at
    for message in _json_files(messages):
        for entry in (message, *_json_files(parts / message.file.stem)):
            size, modified_at = size + entry.size, max(modified_at, entry.modified_at)
    return ImportItem(session.file, size, reread_time(modified_at), session.label)
