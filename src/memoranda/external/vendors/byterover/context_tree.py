"""The context tree: Markdown files in `.brv/context-tree` of a project, as `brv` writes and searches them.

    conversations/<session>/<key>.md    one file per turn
    memory/<target>/<text>.md           one file per entry of curated memory

A file's name comes from the key of a turn or from the text of an entry, so storing it again replaces it.
"""

import json
import re
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from memoranda.errors import TemporaryProviderError
from memoranda.external.vendors.scope import encode_name
from memoranda.external.vendors.vendor import digest
from memoranda.support.durable_files import make_private_directory, read_file, write_private
from memoranda.support.lazy_dataclass import dataclass

CONVERSATIONS = "conversations"
MEMORY = "memory"
_MAX_FILE_BYTES = 2_000_000
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_UPDATED = re.compile(r"^updatedAt:\s*'?([^'\n]+?)'?\s*$", re.MULTILINE)
# What brv derives from a file, next to it.
_DERIVED = (".abstract.md", ".overview.md")


@dataclass(frozen=True, slots=True)
class TreeFile:
    """The text of a file without its front matter, and when it was changed, if it says so."""

    text: str
    time: str | None


class ContextTree:
    """The tree of one project directory. Raises TemporaryProviderError if a file cannot be read or written."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.root = project / ".brv" / "context-tree"

    def create(self) -> None:
        """Make the directory a project of `brv`, unless it is one."""
        config = self.project / ".brv" / "config.json"
        try:
            if not config.exists():
                make_private_directory(self.project)
                make_private_directory(config.parent)
                now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                values = {"createdAt": now, "cwd": str(self.project), "version": "0.0.1"}
                write_private(config, json.dumps(values, indent=2).encode())
            make_private_directory(self.root)
        except OSError as error:
            raise _unusable(self.root, error) from error

    def turn_path(self, session_id: str, key: str) -> str:
        return f"{self.session_path(session_id)}/{digest(key, chars=24)}.md"

    def session_path(self, session_id: str) -> str:
        return f"{CONVERSATIONS}/{encode_name(session_id)[:60]}-{digest(session_id, chars=8)}"

    def entry_path(self, target: str, text: str) -> str:
        return f"{MEMORY}/{target if target in ('memory', 'user') else 'memory'}/{digest(text.strip(), chars=24)}.md"

    def write(self, path: str, kind: str, text: str, time: float) -> str:
        """Write a file with the front matter of `brv`; returns its path. `kind` is a word for its title."""
        self.create()
        file = self.root / path
        try:
            for directory in (file.parent.parent, file.parent):
                make_private_directory(directory)
            write_private(file, _format(kind, text, time).encode("utf-8", "replace"))
        except OSError as error:
            raise _unusable(file, error) from error
        return path

    def read(self, path: str) -> TreeFile | None:
        """A file that `brv` has named; None if it is missing or not inside the tree."""
        file = self._inside(path)
        if file is None:
            return None
        try:
            text = read_file(file, _MAX_FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            return None
        return parse_file(text)

    def delete(self, path: str) -> None:
        """Delete a file with `brv`'s copies of it, or a directory; nothing happens if it is missing."""
        file = self._inside(path)
        if file is None:
            return
        try:
            if file.is_dir():
                shutil.rmtree(file)
                return
            file.unlink(missing_ok=True)
            for suffix in _DERIVED:
                file.with_name(file.name.removesuffix(".md") + suffix).unlink(missing_ok=True)
            (self.root.parent / "review-backups" / path).unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(file, error) from error

    def files(self) -> set[str]:
        return {file.relative_to(self.root).as_posix() for file in self.root.rglob("*.md")}

    def relative(self, paths: Iterable[object]) -> list[str]:
        """Paths inside the tree, as `brv` names the files that it has changed."""
        root = self.root.resolve()
        found = (Path(str(path)).resolve() for path in paths)
        return [path.relative_to(root).as_posix() for path in found if path.is_relative_to(root)]

    def _inside(self, path: str) -> Path | None:
        pure = PurePosixPath(path)
        if not pure.parts or pure.is_absolute() or ".." in pure.parts:
            return None
        file = self.root.joinpath(*pure.parts)
        return file if file.resolve().is_relative_to(self.root.resolve()) else None


def parse_file(text: str) -> TreeFile:
    """A file's text without its front matter."""
    front = _FRONT.match(text)
    if front is None:
        return TreeFile(text.strip(), None)
    updated = _UPDATED.search(front[1])
    return TreeFile(text[front.end() :].strip(), updated[1] if updated else None)


def _format(kind: str, text: str, time: float) -> str:
    # The title has no words of the text: brv would count them twice.
    when = datetime.fromtimestamp(time, UTC)
    stamp = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    front = [f"title: {kind} of {when:%Y-%m-%d %H.%M.%S}", "tags: [memoranda]", "related: []", "keywords: []"]
    return "\n".join(["---", *front, f"createdAt: '{stamp}'", f"updatedAt: '{stamp}'", "---", text.strip(), ""])


def _unusable(path: Path, error: OSError) -> TemporaryProviderError:
    return TemporaryProviderError(f"{path} cannot be written: {error.strerror or error}.")
