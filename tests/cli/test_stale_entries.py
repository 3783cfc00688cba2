"""`memoranda memory stale` and `confirm`, as a person uses them."""

from pathlib import Path

import pytest

from memoranda.storage.files.journal import without_checksum
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow


def test_old_entries_are_listed_until_they_are_confirmed(tmp_path: Path) -> None:
    """With their handles, the oldest first; nothing is changed by looking."""
    terminal = Terminal(tmp_path)
    terminal.ok("memory", "add", "Uses tabs.")
    terminal.ok("memory", "add", "Lives in Oslo.", "--target", "user")
    assert "was written or confirmed since 20" in terminal.ok("memory", "stale")
    journal = tmp_path / "memories" / "journal.jsonl"
    first, second = map(without_checksum, journal.read_bytes().splitlines())
    year = first.split(b'"at":"')[1][:4]
    older = (first.replace(year, b"2021"), second.replace(year, b"2020"))
    journal.write_bytes(b"".join(line + b"\n" for line in older))
    listed = terminal.json("memory", "stale")["entries"]
    assert [(item["target"], item["text"]) for item in listed] == [
        ("user", "Lives in Oslo."),
        ("memory", "Uses tabs."),
    ]
    assert [item["text"] for item in terminal.json("memory", "stale", "--older-than", "2021-01-01")["entries"]] == [
        "Lives in Oslo."
    ]
    assert "Confirmed: Lives in Oslo." in terminal.ok("memory", "confirm", listed[0]["handle"])
    shown = terminal.ok("memory", "stale")
    assert "Uses tabs." in shown and "Oslo" not in shown and "memory confirm" in shown
    refused = terminal.run("memory", "confirm", "tabs", "--target", "user")
    assert refused.exit_code != 0 and "Nothing was confirmed" in refused.output
    assert "confirm by person" in terminal.ok("memory", "log")
