"""The shared write path: a change is in the journal before it is in its file, and a failure leaves neither."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import StorageError
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.files.journal import Journal
from memoranda.storage.files.journal_file import LineFile
from memoranda.storage.files.journaled_writer import (
    JournaledWriter,
    WriteFailure,
    run_exclusively,
    was_never_published,
    write_failure,
)
from memoranda.support.durable_files import staged_path
from memoranda.support.text_file import MissingFile, TextFile, fingerprint, read_text

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    action: str
    after: str
    refers_to: int | None = None


class Writer(JournaledWriter[Line]):
    """Writes one file, `note.txt`."""

    def __init__(self, directory: Path) -> None:
        self.journal: Journal[Line] = Journal(LineFile(directory / "journal.jsonl"), lambda record: Line(**record))
        super().__init__(directory, self.journal, lock_timeout=0.05)
        self.path = directory / "note.txt"
        self.staged = Path(staged_path(self.path))

    def write(self, text: str, **options: Any) -> WriteFailure | None:
        return run_exclusively(self.exclusive, self.path, lambda: self._write(text, **options))

    def actions(self) -> list[str]:
        return [line.action for line in self.journal.changes()]

    def _write(self, text: str, **options: Any) -> WriteFailure | None:
        found = read_text(self.path)
        assert isinstance(found, TextFile | MissingFile)
        last, content = self.journal.last(), text.encode()
        line = Line(last.number + 1 if last else 1, "write", fingerprint(content))
        return self.replace(found, content, [line], **options)

    def _settle(self) -> None:
        if self.staged.exists():
            last = self.journal.last()
            if last and was_never_published(self.staged, self.path, last.after):
                self.journal.append([Line(last.number + 1, "void", "", last.number)])
            self.staged.unlink()


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "home")


def test_the_journal_has_a_change_before_the_file_does(writer: Writer) -> None:
    """When the rename is next, the line is on disk and the file is still the old one."""
    assert writer.write("one") is None
    states = []
    assert (
        writer.write("two", before_publish=lambda: states.append((writer.actions(), writer.path.read_text()))) is None
    )
    assert states == [(["write", "write"], "one")]
    assert writer.path.read_text() == "two"


def test_a_file_that_changed_during_the_write_is_not_replaced(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is void, the other program's text stays, and nothing is left over."""
    writer.write("one")
    append = writer.journal.append

    def append_while_another_program_writes(lines: list[Line]) -> None:
        append(lines)
        writer.path.write_text("theirs")

    with monkeypatch.context() as patch:
        patch.setattr(writer.journal, "append", append_while_another_program_writes)
        failure = writer.write("two")
    assert failure is not None and failure.reason == "changed"
    assert (writer.actions(), writer.path.read_text(), writer.staged.exists()) == (["write"], "theirs", False)


@pytest.mark.parametrize("step", ["stage", "publish"])
def test_what_the_disk_refuses_is_undone_and_reported(
    writer: Writer, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure names the path; the file, the journal and the directory are as before."""
    writer.write("one")

    def refuse(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"memoranda.storage.files.journaled_writer.{step}", refuse)
        failure = writer.write("two")
    assert failure is not None and failure.reason == "storage"
    assert str(writer.path) in failure.message and "No space left" in failure.message
    assert (writer.actions(), writer.path.read_text(), writer.staged.exists()) == (["write"], "one", False)


def test_a_missing_confirmation_is_no_lost_write(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """When only the sync of the directory failed, the change stays in the journal and in the file."""

    def refuse(*arguments: object) -> None:
        raise OSError(5, "Input/output error")

    writer.write("one")
    monkeypatch.setattr("memoranda.support.durable_files.sync_directory", refuse)
    failure = writer.write("two")
    assert failure is not None and "did not confirm" in failure.message
    assert (writer.actions(), writer.path.read_text()) == (["write", "write"], "two")


def test_a_held_lock_and_other_errors_are_failures_too(writer: Writer) -> None:
    """A lock names its holder; an error of the caller's own keeps its message."""
    writer.write("one")
    with FileLock(writer.directory / ".lock", timeout=1):
        locked = writer.write("two")
    assert locked is not None and locked.reason == "locked" and str(os.getpid()) in locked.message

    def fail() -> None:
        raise StorageError("It is in the way.")

    assert run_exclusively(writer.exclusive, writer.path, fail) == WriteFailure("storage", "It is in the way.")


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_staged_file_tells_whether_its_change_was_made(tmp_path: Path, is_readable: bool) -> None:
    """Only a staged file with the wanted content counts, and only while the file itself does not have it."""
    staged, path, wanted = tmp_path / ".a.tmp", tmp_path / "a", fingerprint(b"new")
    staged.write_bytes(b"new")
    assert was_never_published(staged, path, wanted)
    if is_readable:
        path.write_bytes(b"old")
    else:
        path.mkdir()
    assert was_never_published(staged, path, wanted)
    assert not was_never_published(staged, path, fingerprint(b"something else"))
    if is_readable:
        path.write_bytes(b"new")
        assert not was_never_published(staged, path, wanted)


def test_links_and_read_only_files_are_not_replaced(tmp_path: Path) -> None:
    """A rename would cut the link, or ignore the permission that the owner took away."""
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("x")
    link.symlink_to(path)
    plain, linked = read_text(path), read_text(link)
    assert isinstance(plain, TextFile) and isinstance(linked, TextFile)
    assert write_failure(plain) is None
    failure = write_failure(linked)
    assert failure is not None and failure.reason == "symlink"
    path.chmod(0o400)
    failure = write_failure(plain)
    assert failure is not None and failure.reason == "read_only"
