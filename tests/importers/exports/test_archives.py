"""Exports are found in archives and unpacked, distinguished by their content, and never changed."""

import os
import zipfile
from pathlib import Path

import pytest

from memoranda.importers.exports.chatgpt import ChatGPT
from memoranda.importers.exports.claude import ClaudeExport
from memoranda.importers.reader_protocol import ImportedMessage
from tests.importers.exports.samples import claude, edited, spoken, write_json, write_zip
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow

CHAT = claude("c-1", spoken("m1", "human", "hello"))


def test_two_services_with_the_same_file_name_are_distinguished(tmp_path: Path) -> None:
    """By the fields of their conversations."""
    ours = write_zip(tmp_path / "gpt.zip", {"conversations.json": [edited()], "user.json": {}})
    theirs = write_zip(tmp_path / "data.zip", {"conversations.json": [CHAT], "projects.json": []})
    assert [item.file for item in ChatGPT().scan(tmp_path)] == [ours]
    assert [item.file for item in ClaudeExport().scan(tmp_path)] == [theirs]
    assert ChatGPT().scan(theirs) == []


def test_numbered_parts_are_all_found(tmp_path: Path) -> None:
    """As ChatGPT has written them since 2026, packed and unpacked, and in folders inside an archive."""
    members = {f"export/conversations-00{number}.json": [edited()] for number in range(3)}
    write_zip(tmp_path / "gpt.zip", {**members, "shared_conversations.json": [], "chat.html": ""})
    write_json(tmp_path / "open" / "conversations-000.json", [edited()])
    found = ChatGPT().scan(tmp_path)
    assert [item.label for item in found] == [*sorted(members), "conversations"]
    assert all(any(isinstance(each, ImportedMessage) for each in ChatGPT().read(item)) for item in found)


def test_only_downloads_are_searched(tmp_path: Path) -> None:
    """Archives and unpacked exports; other archives are not opened."""
    downloads = Path.home() / "Downloads"
    write_zip(downloads / "gpt.zip", {"conversations.json": [edited()]})
    write_json(downloads / "data-2026" / "conversations.json", [CHAT])
    write_zip(downloads / "photos.zip", {"a.json": []})
    (downloads / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    write_zip(Path.home() / "gpt.zip", {"conversations.json": [edited()]})
    assert [item.file.name for item in ChatGPT().scan(None)] == ["gpt.zip"]
    assert [item.file.parent.name for item in ClaudeExport().scan(None)] == ["data-2026"]


def test_without_downloads_there_is_nothing(tmp_path: Path) -> None:
    """An empty home is not an error."""
    assert ChatGPT().scan(None) == []
    assert ChatGPT().scan(tmp_path / "missing") == []


@pytest.mark.parametrize("content", [b"PK\x03\x04 and no more", b"", b"hello", b"[]", b'[{"mapping": 1}]'])
def test_a_named_file_that_cannot_be_used_says_what_is_wrong(tmp_path: Path, content: bytes) -> None:
    """It is a problem of that file, and the import continues."""
    file = tmp_path / "conversations.json"
    file.write_bytes(content)
    summary = Home(tmp_path / "home").take(ChatGPT(), file)
    assert summary.messages == 0
    assert summary.items == 1
    assert summary.problem_count == (0 if content == b"[]" else 1)


def test_a_damaged_archive_is_reported_and_read_again_when_repaired(tmp_path: Path) -> None:
    """What could be read before the damage stays."""
    file = write_zip(tmp_path / "gpt.zip", {"conversations.json": [edited()] * 50})
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[len(damaged) // 3] ^= 0xFF
    file.write_bytes(damaged)
    home = Home(tmp_path / "home")
    assert home.take(ChatGPT(), file).problem_count == 1
    file.write_bytes(whole)
    home.take(ChatGPT(), file)
    assert home.everything().keys() >= {"chatgpt-conv-1"}


def test_an_archive_with_an_unsupported_compression_is_a_problem(tmp_path: Path) -> None:
    """Instead of failing in the middle."""
    file = tmp_path / "gpt.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("conversations.json", "[]")
    summary = Home(tmp_path / "home").take(ChatGPT(), file)
    assert "compressed in an unsupported way" in summary.problems[0].text


def test_an_export_is_only_read(tmp_path: Path) -> None:
    """Neither its bytes nor its time change."""
    file = write_zip(tmp_path / "gpt.zip", {"conversations.json": [edited()]})
    os.utime(file, (1000, 1000))
    file.chmod(0o400)
    before = file.read_bytes()
    Home(tmp_path / "home").take(ChatGPT(), file)
    assert file.read_bytes() == before
    assert file.stat().st_mtime == 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpt.zip", "home"]


def test_an_archive_that_expands_beyond_all_exports_is_refused(tmp_path: Path) -> None:
    """Before it is unpacked, with both sizes; an unpacked file of that size is read."""
    file = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as member,
    ):
        member.write(b'[{"mapping": "')
        for _ in range(40):
            member.write(b" " * 1024 * 1024)
    summary = Home(tmp_path / "home").take(ChatGPT(), file)
    [problem] = map(str, summary.kept_problems)
    assert "would expand from" in problem and "to 41,943,054 bytes" in problem
