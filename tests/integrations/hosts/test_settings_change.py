"""A change to a host's settings is applied completely or not at all, and only to the content that was shown."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoranda.integrations.hosts.settings_change import (
    CreatedFiles,
    HostFileChange,
    SettingsBackups,
    SettingsError,
    apply_change,
    apply_changes,
    read_settings,
)
from tests.conftest import mode


def test_a_change_keeps_a_private_copy_and_the_mode_of_the_file(tmp_path: Path) -> None:
    """The copy has the bytes from before."""
    file = tmp_path / "settings.json"
    file.write_text('{"token": "x"}')
    file.chmod(0o640)
    backup = apply_change(HostFileChange(file, file.read_bytes(), b"{}"), tmp_path / "backups")
    assert backup is not None
    assert (file.read_bytes(), mode(file)) == (b"{}", 0o640)
    assert (backup.read_bytes(), mode(backup), mode(backup.parent)) == (b'{"token": "x"}', 0o600, 0o700)


def test_a_new_file_is_private_unless_a_project_shares_it(tmp_path: Path) -> None:
    """And there is nothing to keep a copy of."""
    private, shared = tmp_path / "a" / "mcp.json", tmp_path / "b" / "mcp.json"
    assert apply_change(HostFileChange(private, None, b"{}"), tmp_path / "backups") is None
    apply_change(HostFileChange(shared, None, b"{}", shared=True), tmp_path / "backups")
    assert (mode(private), mode(shared)) == (0o600, 0o644)
    assert not (tmp_path / "backups").exists()


def test_what_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    """A host that is running writes its own settings."""
    file = tmp_path / "settings.json"
    file.write_text("{}")
    change = HostFileChange(file, b"{}", b'{"ours": 1}')
    file.write_text('{"theirs": 1}')
    with pytest.raises(SettingsError, match="changed in the meantime"):
        apply_change(change, tmp_path / "backups")
    assert file.read_text() == '{"theirs": 1}'
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["settings.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """People keep their settings in another repository and link to them."""
    real, link = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    real.write_text("{}")
    link.symlink_to(real)
    apply_change(HostFileChange(link, b"{}", b'{"a": 1}'), tmp_path / "backups")
    assert link.is_symlink()
    assert real.read_text() == '{"a": 1}'


def test_only_the_newest_copy_of_each_file_is_kept(tmp_path: Path) -> None:
    """Files of the same name in two projects have a copy each; other files stay."""
    backups = tmp_path / "backups"
    backups.mkdir()
    (backups / "20261116T053704.450230-other.json").write_text("{}")
    files = [tmp_path / name / ".settings.json" for name in ("one", "two")]
    for number in range(3):
        for file in files:
            before = file.read_bytes() if file.exists() else None
            apply_change(HostFileChange(file, before, b"%s %d" % (file.parent.name.encode(), number)), backups)
    assert sorted(path.read_text() for path in backups.iterdir()) == ["one 1", "two 1", "{}"]
    SettingsBackups(backups).remove(files[:1])
    assert sorted(path.read_text() for path in backups.iterdir()) == ["two 1", "{}"]
    (backups / "20261116T053704.450230-other.json").unlink()
    SettingsBackups(backups).remove(files)
    assert not backups.exists()


def test_a_pipe_is_an_error_and_not_an_endless_wait(tmp_path: Path) -> None:
    """A pipe has the path of the settings."""
    os.mkfifo(tmp_path / "settings.json")
    with pytest.raises(SettingsError, match="Not a regular file"):
        read_settings(tmp_path / "settings.json")


@pytest.mark.slow
def test_after_a_kill_the_file_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    """Never a part of either, and never missing."""
    file = tmp_path / "settings.json"
    old, new = b'{"old": "' + b"o" * 200_000 + b'"}', b'{"new": "' + b"n" * 200_000 + b'"}'
    file.write_bytes(old)
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from memoranda.integrations.hosts.settings_change import HostFileChange, apply_change\n"
        "file = Path(sys.argv[1])\nprint('ready', flush=True)\n"
        "old, new = file.read_bytes(), Path(sys.argv[2]).read_bytes()\n"
        "while True:\n    apply_change(HostFileChange(file, old, new), file.parent / 'backups')\n"
        "    old, new = new, old\n"
    )
    (tmp_path / "new").write_bytes(new)
    for number in range(8):
        file.write_bytes(old)
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(file), str(tmp_path / "new")], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.003 * number)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert file.read_bytes() in (old, new)


def test_when_one_change_fails_earlier_ones_are_reverted(tmp_path: Path) -> None:
    """The error says that nothing was changed."""
    old, new, bad = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "no directory" / "c.json"
    old.write_text("{}")
    old.chmod(0o640)
    bad.parent.write_text("")
    changes = [HostFileChange(old, b"{}", b"1"), HostFileChange(new, None, b"2"), HostFileChange(bad, None, b"3")]
    with pytest.raises(SettingsError, match=r"c.json cannot be written: .* Nothing was changed\.$"):
        apply_changes(changes, tmp_path / "backups")
    assert (old.read_text(), mode(old)) == ("{}", 0o640)
    assert not new.exists()
    assert new not in CreatedFiles(tmp_path / "backups")


def test_what_was_created_and_removed_leaves_no_trace(tmp_path: Path) -> None:
    """Neither the file nor its directories nor the note about them; other directories stay."""
    (tmp_path / "there").mkdir()
    file, backups = tmp_path / "there" / "a" / "b" / "c.json", tmp_path / "home" / "backups"
    apply_changes([HostFileChange(file, None, b"1")], backups)
    assert file in CreatedFiles(backups)
    removal = HostFileChange(file, b"1", None)
    assert removal.diff().splitlines()[1] == "+++ (removed file)"
    assert apply_changes([removal], backups) == [None]
    assert list((tmp_path / "there").iterdir()) == []
    assert not backups.exists()


def test_a_removal_is_undone_when_a_later_change_fails(tmp_path: Path) -> None:
    """A file that changed in the meantime is not removed at all."""
    file, bad = tmp_path / "a.json", tmp_path / "no directory" / "c.json"
    apply_changes([HostFileChange(file, None, b"1")], tmp_path / "backups")
    bad.parent.write_text("")
    with pytest.raises(SettingsError, match="Nothing was changed"):
        apply_changes([HostFileChange(file, b"1", None), HostFileChange(bad, None, b"3")], tmp_path / "backups")
    assert file.read_text() == "1"
    with pytest.raises(SettingsError, match="changed in the meantime"):
        apply_changes([HostFileChange(file, b"0", None)], tmp_path / "backups")
    assert file.read_text() == "1"


def test_a_change_that_cannot_be_reverted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its backup, when the host itself wrote to the file in the meantime."""
    file, fresh, bad = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    for each in (file, bad):
        each.write_text("{}")

    def made(change: HostFileChange, backups: Path) -> Path | None:
        copy = apply_change(change, backups)
        change.file.write_text("theirs")
        return copy

    monkeypatch.setattr("memoranda.integrations.hosts.settings_change.apply_change", made)
    changes = [
        HostFileChange(file, b"{}", b"1"),
        HostFileChange(fresh, None, b"2"),
        HostFileChange(bad, b"other", b"3"),
    ]
    with pytest.raises(SettingsError) as told:
        apply_changes(changes, tmp_path / "backups")
    copy = next(path for path in (tmp_path / "backups").iterdir() if path.name.endswith("-a.json"))
    assert f"{file} stays changed (backup: {copy})" in str(told.value)
    assert f"{fresh} stays changed (it did not exist before)" in str(told.value)
    assert "Nothing was changed" not in str(told.value)
    assert (file.read_text(), fresh.read_text()) == ("theirs", "theirs")


def test_a_read_only_file_is_not_changed(tmp_path: Path) -> None:
    """Its owner protected it; it is not changed through a link either."""
    file, link = tmp_path / "settings.json", tmp_path / "link.json"
    file.write_text("{}")
    file.chmod(0o444)
    link.symlink_to(file)
    for name in (file, link):
        with pytest.raises(SettingsError, match="is read-only"):
            apply_change(HostFileChange(name, b"{}", b"1"), tmp_path / "backups")
    assert (file.read_text(), mode(file)) == ("{}", 0o444)
    assert not (tmp_path / "backups").exists()


def test_without_a_copy_nothing_is_changed(tmp_path: Path) -> None:
    """A home that cannot be written."""
    file = tmp_path / "settings.json"
    file.write_text("{}")
    (tmp_path / "home").write_text("no directory")
    with pytest.raises(SettingsError, match=r"settings.json cannot be backed up"):
        apply_change(HostFileChange(file, b"{}", b"1"), tmp_path / "home" / "backups")
    assert file.read_text() == "{}"
