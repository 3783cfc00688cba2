"""The list of backups that a home was written to, so that `forget` can say where a text may still be."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from memoranda.support.durable_files import append_private, make_private_directory
from memoranda.upkeep.backup.contents import DIRECTORY

_FILE = "written.jsonl"


@dataclass(frozen=True, slots=True)
class WrittenBackup:
    """A file that a backup was written to. It may have been moved or deleted since."""

    path: str
    created_at: str


def note_backup(root: Path, backup: WrittenBackup) -> None:
    """Add a backup to the list of a home."""
    make_private_directory(root / DIRECTORY)
    append_private(root / DIRECTORY / _FILE, json.dumps(asdict(backup), ensure_ascii=False).encode() + b"\n")


def written_backups(root: Path) -> list[WrittenBackup]:
    """The backups of a home that are still where they were written, each once, with the time of the last one."""
    try:
        lines = (root / DIRECTORY / _FILE).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    latest: dict[str, WrittenBackup] = {}
    for line in lines:
        try:
            data = json.loads(line)
            backup = WrittenBackup(str(data["path"]), str(data["created_at"]))
        except (ValueError, KeyError, TypeError):
            # A line that a power cut tore; the list only informs.
            continue
        if Path(backup.path).exists():
            latest[backup.path] = backup
    return list(latest.values())
