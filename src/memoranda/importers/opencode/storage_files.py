"""Sessions in the files of OpenCode before version 1.2: one for each session, message and part."""

import os
from collections.abc import Iterator
from pathlib import Path

from memoranda.importers.opencode.messages import StoredMessage, StoredSession, said_in, session_of
from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_files import find_files, item_at, read_json_file, reread_time

_WHAT = "session"


def sessions(where: Path) -> list[ImportItem]:
    """An item for each session, with the size and the latest change of everything that belongs to it."""
    found = [item for place in _places(where) for item in find_files(place, _is_session, _WHAT)]
    # Names of sessions are made of the time, counted down: the oldest is the largest.
    return [_with_messages(item) for item in sorted(found, key=lambda item: item.file.name, reverse=True)]


def read(item: ImportItem) -> Iterator[StoredSession | StoredMessage | Problem]:
    """One session from its files."""
    info = read_json_file(item)
    if not isinstance(info, dict):
        yield info if isinstance(info, Problem) else Problem(item.file, None, "a JSON object is expected")
        return
    session = session_of(info, item.file.stem)
    yield session
    messages, parts = _folders(item.file)
    for message in _listed(messages):
        value = read_json_file(message)
        if not isinstance(value, dict):
            yield value if isinstance(value, Problem) else Problem(message.file, None, "a JSON object is expected")
            continue
        made = []
        for part in _listed(parts / message.file.stem):
            each = read_json_file(part)
            if isinstance(each, dict):
                made.append({"id": part.file.stem, **each})
            else:
                yield each if isinstance(each, Problem) else Problem(part.file, None, "a JSON object is expected")
        yield said_in(value, message.file.stem, made)


def _places(where: Path) -> list[Path]:
    """The folders in which descriptions of sessions lie."""
    try:
        old = sorted((where / "project").glob("*/storage/session/info"))
    except OSError:
        old = []
    return [where / "storage" / "session", *old]


def _is_session(file: Path) -> bool:
    return file.suffix == ".json" and file.name.startswith("ses_")


def _folders(session: Path) -> tuple[Path, Path]:
    """Where the messages of a session are, and the folders of their parts."""
    if session.parent.name == "info":
        storage = session.parent.parent
        return storage / "message" / session.stem, storage / "part" / session.stem
    storage = session.parent.parent.parent
    return storage / "message" / session.stem, storage / "part"


def _listed(folder: Path) -> list[ImportItem]:
    """The files of a folder by name, which is by time."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return []
    found = [item_at(folder / name, _WHAT) for name in names]
    return [item for item in found if item is not None]


def _with_messages(session: ImportItem) -> ImportItem:
    messages, parts = _folders(session.file)
    size, modified_at = session.size, session.modified_at
    for message in _listed(messages):
        for each in (message, *_listed(parts / message.file.stem)):
            size, modified_at = size + each.size, max(modified_at, each.modified_at)
    return ImportItem(session.file, size, reread_time(modified_at), session.label)
