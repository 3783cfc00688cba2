"""Backups of a home in zip files: each is unpacked, searched and changed like a home, and packed again."""

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.support.durable_files import discard_staged, make_private_directory, publish, staged_path, write_private
from memoranda.support.home import Home
from memoranda.upkeep.backup import manifest
from memoranda.upkeep.forgetting.home_files import WORK_DIRECTORY, walk
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope

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
