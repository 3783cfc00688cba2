"""Finds the directory of a project; the folders of Gemini CLI contain only its name or a digest."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from memoranda.importers.source_files import open_source

_MAX_BYTES = 1024 * 1024
# Files whose keys are directories.
_PROJECT_LISTS = ("projects.json", "trustedFolders.json")


def directory_of(file: Path, project: str | None) -> str | None:
    """Return the directory of the project that a file belongs to; `project` is the digest in the file."""
    folder = next((parent for parent in file.parents if parent.parent.name == "tmp"), None)
    return _lookup(folder, project or "") if folder else None


@lru_cache(maxsize=256)
def _lookup(folder: Path, project: str) -> str | None:
    if root := _read_text(folder / ".project_root").strip():
        return root
    for name in _PROJECT_LISTS:
        listed = _parse_object(_read_text(folder.parent.parent / name))
        inner = listed.get("projects")
        for path, known_as in (inner if isinstance(inner, dict) else listed).items():
            if known_as == folder.name or _digest(path) in (folder.name, project):
                return str(path)
    return None


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def _read_text(file: Path) -> str:
    try:
        with open_source(file) as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        # Only the directory of the session is lost.
        return ""


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
