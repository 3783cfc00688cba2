"""The directory of a project, of which Gemini CLI's folders show only a name or a digest."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from memoranda.importers.source_files import open_source

_LARGEST = 1024 * 1024
# Files in which directories are keys.
_LISTS = ("projects.json", "trustedFolders.json")


def directory_of(file: Path, project: str | None) -> str | None:
    """The directory of the project in whose folder a file lies; `project` is its digest as the file says it."""
    folder = next((each for each in file.parents if each.parent.name == "tmp"), None)
    return _found(folder, project or "") if folder else None


@lru_cache(maxsize=256)
def _found(folder: Path, project: str) -> str | None:
    if root := _text(folder / ".project_root").strip():
        return root
    for name in _LISTS:
        listed = _object(_text(folder.parent.parent / name))
        inner = listed.get("projects")
        for path, known_as in (inner if isinstance(inner, dict) else listed).items():
            if known_as == folder.name or _digest(path) in (folder.name, project):
                return str(path)
    return None


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def _text(file: Path) -> str:
    try:
        with open_source(file) as stream:
            return stream.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        # It only tells where something took place.
        return ""


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
