"""Private, durable files."""

import os
from pathlib import Path

import pytest

from memoranda.support import durable_files
from tests.conftest import mode


def test_a_written_file_and_its_new_directories_belong_to_their_owner_alone(tmp_path: Path) -> None:
    """Directories are made 0700 and files 0600, whatever the umask says."""
    old = os.umask(0)
    try:
        durable_files.make_private_directory(tmp_path / "a" / "b")
        durable_files.write_private(tmp_path / "a" / "b" / "f", b"x")
        durable_files.append_private(tmp_path / "a" / "b" / "g", b"x")
    finally:
        os.umask(old)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    assert [mode(tmp_path / "a" / "b" / "f"), mode(tmp_path / "a" / "b" / "g")] == [0o600, 0o600]


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    """A directory that exists already is not changed."""
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a").chmod(0o755)
    durable_files.make_private_directory(tmp_path / "a" / "b")
    assert mode(tmp_path / "a") == 0o755


def test_staging_leaves_the_target_alone_until_it_is_published(tmp_path: Path) -> None:
    """The old content stands until publish, the new one after it, and no staged file remains."""
    target = tmp_path / "f"
    durable_files.write_private(target, b"old")
    durable_files.stage(target, b"new")
    assert target.read_bytes() == b"old"
    durable_files.publish(target)
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_failed_stage_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk refuses the sync, the staged file is gone and the error is passed on."""

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        durable_files.stage(tmp_path / "f", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_append_is_cut_off_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that could not be synced leaves the file as it was."""
    durable_files.append_private(tmp_path / "f", b"first\n")

    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output"):
        durable_files.append_private(tmp_path / "f", b"second\n")
    assert (tmp_path / "f").read_bytes() == b"first\n"


def test_a_staged_file_that_a_stranger_linked_is_not_followed(tmp_path: Path) -> None:
    """A link planted under the staged name is replaced, and what it points to stays untouched."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.symlink(victim, durable_files.staged_path(tmp_path / "f"))
    durable_files.write_private(tmp_path / "f", b"new")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "f").read_bytes() == b"new"
