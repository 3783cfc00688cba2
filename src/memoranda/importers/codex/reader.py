"""Reads the rollouts of Codex, one file per session, as versions from April 2025 (0.1) to 0.166 write them.

Today a rollout is a file of JSON lines, `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`; archived sessions are in
`archived_sessions/`, and old ones may be compressed (`.jsonl.zst`). In versions such as 0.27 the lines had no envelope,
and the first versions wrote one JSON object (`rollout-<date>-<id>.json`). The name that a user gave a session
is in `session_index.jsonl`.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.chat_messages import get_field, get_text
from memoranda.importers.codex.rollout import Rollout
from memoranda.importers.reader_protocol import Checkpoint, ImportItem, Problem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_files import (
    Line,
    find_files,
    item_at,
    read_json_file,
    read_json_lines,
    read_line_events,
)
from memoranda.importers.zstandard import compressed_lines

_ROLLOUT_NAME = re.compile(r"rollout-.*\.(jsonl|jsonl\.zst|json)")
_ID = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.")
_FOLDERS = ("sessions", "archived_sessions")
_INDEX = "session_index.jsonl"


class Codex:
    """The reader of Codex's rollouts."""

    name = "codex"

    def __init__(self) -> None:
        self._titles: dict[Path, tuple[float, dict[str, str]]] = {}

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the rollouts of every session, the oldest first, so that a session precedes its forks."""
        path = Path.home() / ".codex" if path is None else path
        if single := item_at(path, "session"):
            return [single]
        folders = [path / name for name in _FOLDERS if (path / name).is_dir()] or [path]
        found = [item for folder in folders for item in find_files(folder, _is_rollout, "session")]
        return sorted(found, key=lambda item: (item.file.name, str(item.file)))

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the messages of a rollout as they were written."""
        id_match = _ID.search(item.file.name)
        host_id = id_match[1] if id_match else item.file.name.split(".")[0]
        rollout = Rollout(item, host_id, self._titles_for(item.file))
        if item.file.suffix == ".json":
            yield from _read_single_object(item, rollout)
            return
        is_compressed = item.file.suffix == ".zst"
        lines = compressed_lines(item) if is_compressed else read_json_lines(item)
        for event in read_line_events(lines, lambda line: rollout.line_events(line.value, line.number), rollout.state):
            # A compressed file cannot be read from the middle.
            if not (is_compressed and isinstance(event, Checkpoint)):
                yield event

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command; Codex finds a session by its id anywhere, and continues in the session's directory."""
        command = f"codex resume {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _titles_for(self, file: Path) -> dict[str, str]:
        """Return the titles that users gave to sessions, from the index next to the directory of a rollout."""
        home = next((folder.parent for folder in file.parents if folder.name in _FOLDERS), None)
        index = item_at(home / _INDEX, "index") if home else None
        if index is None:
            return {}
        known = self._titles.get(index.file)
        if known is None or known[0] != index.modified_at:
            known = (index.modified_at, _read_index(index))
            self._titles[index.file] = known
        return known[1]


def _is_rollout(file: Path) -> bool:
    return _ROLLOUT_NAME.fullmatch(file.name) is not None


def _read_index(index: ImportItem) -> dict[str, str]:
    """Return titles by session; a later line replaces an earlier one. A broken line loses a title, not a message."""
    lines = [found.value for found in read_json_lines(index) if isinstance(found, Line)]
    pairs = [(get_text(entry, "id"), get_text(entry, "thread_name")) for entry in lines]
    return {host_id: title for host_id, title in pairs if host_id and title}


def _read_single_object(item: ImportItem, rollout: Rollout) -> Iterator[ReadEvent]:
    """Read the format of the first versions: one object with the session and its items."""
    value = read_json_file(item)
    if isinstance(value, Problem):
        yield value
        return
    session, items = get_field(value, "session"), get_field(value, "items")
    if not isinstance(session, dict) or not isinstance(items, list):
        yield Problem(item.file, None, "not a rollout of Codex: it has no session with items")
        return
    yield from rollout.line_events(session, None)
    for number, entry in enumerate(items, start=1):
        if isinstance(entry, dict):
            yield from rollout.line_events(entry, None)
        else:
            yield Problem(item.file, None, f"item {number} is not an object")
