"""A file that is not a complete backup restores nothing, wherever it is wrong."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import BackupError
from memoranda.support.home import Home
from memoranda.upkeep.backup import archive as manifest
from memoranda.upkeep.backup.restore import restore_backup

pytestmark = pytest.mark.slow


def _archive(path: Path, contents: dict[str, bytes], **changes: Any) -> Path:
    listed = [{"name": name, "bytes": len(data), "sha256": _digest(data)} for name, data in contents.items()]
    data = {"format": 1, "created_at": "2026-01-01", "version": "1", "profile": "default", "files": listed} | changes
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        archive.writestr(manifest.NAME, json.dumps(data))
    return path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refused(path: Path, root: Path) -> str:
    with pytest.raises(BackupError) as refused:
        restore_backup(path, Home(root))
    assert not root.exists()
    return str(refused.value)


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/outside", "a/../../outside", "C:\\outside", "a\\b", "a//b", "./a", "", "a\0b", ".."]
)
def test_a_name_that_leads_out_of_the_home_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written anywhere."""
    listed = [{"name": name, "bytes": 1, "sha256": _digest(b"x")}]
    path = _archive(tmp_path / "a.zip", {"MEMORY.md": b"x"}, files=listed)
    assert "no home has" in _refused(path, tmp_path / "home")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 2}, "Upgrade"),
        ({"files": "all"}, "manifest"),
        ({"files": [{"name": "a"}]}, "manifest"),
        ({"files": [{"name": "a", "bytes": -1, "sha256": "0" * 64}]}, "nothing usable"),
        ({"files": [{"name": "a", "bytes": 1, "sha256": "0" * 64}]}, "damaged"),
        ({"files": [{"name": "b", "bytes": 1, "sha256": "0" * 64}]}, "missing"),
        ({"files": [{"name": "a", "bytes": 1, "sha256": "0" * 64}] * 2}, "no home has"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    """With what is wrong about it."""
    assert reason in _refused(_archive(tmp_path / "a.zip", {"a": b"x"}, **changes), tmp_path / "home")


def test_content_beyond_the_named_size_is_not_unpacked(tmp_path: Path) -> None:
    """A few bytes that expand to a hundred megabytes are read only as far as the manifest says."""
    bomb = _archive(
        tmp_path / "a.zip", {"a": b"\0" * 100_000_000}, files=[{"name": "a", "bytes": 10, "sha256": "0" * 64}]
    )
    assert bomb.stat().st_size < 200_000
    assert "damaged" in _refused(bomb, tmp_path / "home")


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    """Text, another zip, a truncated backup, and a file that does not exist."""
    plain, other, cut = tmp_path / "text", tmp_path / "other.zip", tmp_path / "cut.zip"
    plain.write_text("not a zip")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a", "b")
    whole = _archive(tmp_path / "a.zip", {"a": b"x" * 10_000})
    cut.write_bytes(whole.read_bytes()[:-30])
    assert "not a backup" in _refused(plain, tmp_path / "home")
    assert "not a backup" in _refused(other, tmp_path / "home")
    assert "not a backup" in _refused(cut, tmp_path / "home")


def test_every_flipped_bit_of_the_contents_is_noticed(tmp_path: Path) -> None:
    """Whichever byte of the compressed data is changed."""
    whole = _archive(tmp_path / "a.zip", {"a": bytes(range(256)) * 4}).read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        start = archive.getinfo("a").header_offset + 31
        end = start + archive.getinfo("a").compress_size
    for position in range(start, end, 7):
        changed = bytearray(whole)
        changed[position] ^= 0x10
        (tmp_path / "b.zip").write_bytes(changed)
        _refused(tmp_path / "b.zip", tmp_path / "home")
