"""The files of a home that no store owns: logs, reports, histories, skills, waiting turns, and backups in zip files.

A file that other processes append to is changed in place and keeps its length: the text is overwritten with asterisks.
Any other file is replaced, with a mark where the text was. Settings are never changed. A backup is unpacked, searched
and changed like a home, and packed again.
"""

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fnmatch import fnmatch
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.writer import SkillJournal
from memoranda.storage.salvage.rebuild import is_database
from memoranda.support.durable_files import (
    discard_staged,
    make_private_directory,
    publish,
    read_file,
    staged_path,
    sync,
    write_private,
)
from memoranda.support.home import Home
from memoranda.support.json_object import parse_json
from memoranda.support.text_matcher import TextMatcher, byte_pattern
from memoranda.upkeep.backup import archive as manifest
from memoranda.upkeep.forgetting.byte_search import walk
from memoranda.upkeep.forgetting.report import Action, ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope

COMPANIONS = ("-wal", "-shm", "-journal")
WORK_DIRECTORY = ".forgetting"
# A person wrote them, and a mark could make them invalid.
_SETTINGS = ("config.yaml", ".env", "prices.yaml", "plugins/*", "providers/*.json", "host-backups/*")
_STATUS = "providers/*.status.json"
# Copies of databases that are only kept: nothing opens them, so their bytes are overwritten.
_DAMAGED = ".damaged-"
# Other processes may have these open, or append to them at any time.
_APPENDED = ("logs/*", "chat_history", f"*{_DAMAGED}*", "*.unreadable*", "*.lock", ".lock")
# The stores that find and change their own files.
_OWNED = re.compile(
    r"(?:state|home|checkpoints)\.db(?:-wal|-shm|-journal)?|state\.(?:index|vectors)\..*"
    r"|(?:state|.*journal)\.marker\.json"
    r"|(?:memories/users/[^/]+/)?projects/[^/]+/MEMORY\.md(?:\.bak\..*)?"
    r"|memories/(?:users/[^/]+/)?(?:MEMORY\.md|USER\.md|journal\.jsonl|forgotten\.json|(?:MEMORY|USER)\.md\.bak\..*|pending/.*)"
    rf"|profiles/.*|{re.escape(WORK_DIRECTORY)}/.*"
)
_AREAS = {
    "logs": "logs",
    "chat_history": "logs",
    "imports": "reports",
    "migration": "reports",
    "skills": "skills",
    "host-turns": "turns",
}
_SKILL_JOURNAL = re.compile(r"skills/(?:\.users/[^/]+/)?\.journal\.jsonl")
_MAX_TEXT_BYTES = 256_000_000


class HomeFiles:
    """The plain files of one scope, or only those of some areas."""

    def __init__(self, scope: ForgetScope, areas: Collection[str] | None = None) -> None:
        self._scope = scope
        self._areas = areas
        self._root = scope.home.root

    def find(self, matcher: TextMatcher) -> list[ForgetPlace]:
        found = []
        for path, name in self._files():
            if count := _count(path, matcher):
                action, note = _treatment(name)
                found.append(ForgetPlace(_area(name), name, count, action, note))
        return found

    def forget(self, matcher: TextMatcher) -> list[str]:
        """Remove the text from the files; returns why a file could not be changed."""
        problems = []
        for path, name in self._files():
            if _treatment(name)[0] == "keep" or not _count(path, matcher):
                continue
            try:
                with self._lock_for(name):
                    _rewrite(path, name, matcher)
            except OSError as error:
                problems.append(f"{path}: {error.strerror or error}")
        return problems

    def _files(self) -> Iterator[tuple[Path, str]]:
        for path in walk(self._root):
            name = path.relative_to(self._root).as_posix()
            is_companion = name.endswith((*COMPANIONS, ".zip")) and _DAMAGED not in name
            if _OWNED.fullmatch(name) or not self._scope.owns(path) or is_companion:
                continue
            if self._areas is not None and _area(name) not in self._areas:
                continue
            if path.stat().st_size and (_DAMAGED in name or not is_database(path)):
                yield path, name

    def _lock_for(self, name: str) -> AbstractContextManager[None]:
        parts = name.split("/")
        if parts[0] != "skills":
            return nullcontext()
        return SkillStore(self._root.joinpath(*parts[: 3 if parts[1] == ".users" else 1])).exclusive()


def _treatment(name: str) -> tuple[Action, str]:
    if any(fnmatch(name, pattern) for pattern in _SETTINGS) and not fnmatch(name, _STATUS):
        return "keep", "settings are not changed; edit the file"
    return "redact", ""


def _area(name: str) -> str:
    first = name.split("/", maxsplit=1)[0]
    return _AREAS.get(first, "files")


def _count(path: Path, matcher: TextMatcher) -> int:
    raw = read_file(path, _MAX_TEXT_BYTES)
    value = parse_json(raw) if path.suffix == ".json" else None
    if value is not None:
        return matcher.replace_value(value).count
    pattern = byte_pattern(matcher.texts, whole_words=matcher.whole_words)
    return max(len(pattern.findall(raw.lower())), matcher.count(raw.decode("utf-8", "replace")))


def _rewrite(path: Path, name: str, matcher: TextMatcher) -> None:
    if any(fnmatch(name, pattern) for pattern in _APPENDED):
        overwrite(path, matcher)
        return
    if _SKILL_JOURNAL.fullmatch(name):
        SkillJournal(path).rewrite(lambda line: _line_without(line, matcher))
        return
    raw = read_file(path)
    value = parse_json(raw) if path.suffix == ".json" else None
    if value is not None:
        written = json.dumps(matcher.replace_value(value).value, ensure_ascii=False, indent=1)
        write_private(path, written.encode("utf-8", "backslashreplace"))
        return
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        overwrite(path, matcher)
        return
    if path.suffix == ".jsonl":
        write_private(path, b"\n".join(_line_without(line, matcher) for line in raw.split(b"\n")))
    else:
        write_private(path, str(matcher.replace(text).value).encode())


def _line_without(line: bytes, matcher: TextMatcher) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    return str(matcher.replace_value(text).value).encode("utf-8", "surrogateescape")


def overwrite(path: Path, matcher: TextMatcher) -> int:
    """Overwrite the text in the bytes of a file, which keeps its length; returns how many times."""
    pattern = byte_pattern(matcher.texts, whole_words=matcher.whole_words)
    count = 0
    with open(path, "r+b") as stream:
        for match in pattern.finditer(stream.read().lower()):
            stream.seek(match.start())
            stream.write(b"*" * (match.end() - match.start()))
            count += 1
        stream.flush()
        sync(stream.fileno())
    return count


FindIn = Callable[[ForgetScope], list[ForgetPlace]]
ForgetIn = Callable[[ForgetScope], list[str]]


class Archives:
    """The backups of one scope. `find` and `forget` work on an unpacked home."""

    def __init__(self, scope: ForgetScope, find: FindIn, forget: ForgetIn) -> None:
        self._scope = scope
        self._find = find
        self._forget = forget
        self._work = scope.home.root / WORK_DIRECTORY

    def find(self) -> list[ForgetPlace]:
        found = []
        for path in self._files():
            with self._unpacked(path) as scope:
                inside = [place for place in self._find(scope) if place.action != "keep"]
            if inside:
                name = path.relative_to(self._scope.home.root).as_posix()
                found.append(ForgetPlace("backups", name, sum(place.count for place in inside), "redact"))
        return found

    def forget(self) -> list[str]:
        """Remove what is found in each archive; returns what could not be changed."""
        problems: list[str] = []
        # The archive that an interrupted run unpacked may be gone.
        self.clean_up()
        for path in self._files():
            with self._unpacked(path) as scope:
                if not any(place.action != "keep" for place in self._find(scope)):
                    continue
                problems += [f"{path.name}: {problem}" for problem in self._forget(scope)]
                _refresh_manifest(scope.home.root)
                self._pack(path, scope.home.root)
        return problems

    def clean_up(self) -> None:
        """Remove what an interrupted run left unpacked."""
        shutil.rmtree(self._work, ignore_errors=True)

    def _files(self) -> list[Path]:
        root = self._scope.home.root
        return [
            path
            for path in walk(root)
            if path.suffix == ".zip" and "profiles" not in path.relative_to(root).parts[:1] and zipfile.is_zipfile(path)
        ]

    @contextmanager
    def _unpacked(self, path: Path) -> Iterator[ForgetScope]:
        self.clean_up()
        make_private_directory(self._work)
        try:
            try:
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(self._work)
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
                raise StorageError(f"{path} cannot be unpacked ({error}). Delete it, or repair it.") from error
            yield ForgetScope(Home(self._work), self._scope.user)
        finally:
            self.clean_up()

    @staticmethod
    def _pack(target: Path, directory: Path) -> None:
        staged = Path(staged_path(target))
        staged.unlink(missing_ok=True)
        try:
            with zipfile.ZipFile(staged, "x", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
                staged.chmod(0o600)
                for file in walk(directory):
                    archive.write(file, file.relative_to(directory).as_posix())
            publish(target)
        except BaseException:
            discard_staged(target)
            raise


def _refresh_manifest(directory: Path) -> None:
    """Let the manifest of a backup name the checksums of the changed files, so that it can still be restored."""
    path = directory / manifest.NAME
    if path.is_file():
        listed = manifest.Manifest.parse(path.read_text("utf-8"))
        write_private(path, listed.refreshed(directory).to_json().encode())
