"""`memoranda sync`, as a person uses it on two machines."""

from pathlib import Path

import pytest

from tests.cli.chat.person import Person
from tests.cli.terminal import Terminal


@pytest.fixture
def terminals(tmp_path: Path) -> tuple[Terminal, Terminal, str]:
    folder = tmp_path / "shared"
    folder.mkdir()
    return Terminal(tmp_path / "a"), Terminal(tmp_path / "b"), str(folder)


@pytest.mark.slow
def test_two_machines_synchronise_and_a_conflict_is_decided(terminals: tuple[Terminal, Terminal, str]) -> None:
    """With one command on each; `run` can be omitted."""
    a, b, folder = terminals
    a.ok("remember", "Likes tea.")
    assert "Would send 1 entry." in a.ok("sync", "--plain", "--dry-run", folder)
    assert "Sent 1 entry. Received nothing." in a.ok("sync", "--plain", folder)
    assert b.json("sync", "--plain", folder)["received"] == {"entries": 1}
    a.ok("memory", "replace", "Likes tea.", "Likes green tea.")
    b.ok("memory", "replace", "Likes tea.", "Likes black tea.")
    a.ok("sync", "run", "--plain", folder)
    assert "1 entry was changed differently" in b.ok("sync", "--plain", folder)
    shown = b.ok("sync", "conflicts")
    assert "Likes black tea." in shown
    assert "Likes green tea." in shown
    (conflict,) = b.json("sync", "conflicts")
    assert "change" in b.ok("sync", "resolve", str(conflict["number"]), "--keep", "theirs")
    assert b.ok("sync", "conflicts") == "There are no conflicts.\n"
    b.ok("sync", "--plain", folder)
    a.ok("sync", "--plain", folder)
    assert "Likes green tea." in a.ok("memory", "list")
    assert "entry memory" in b.ok("sync", "--log") and "Likes green tea." in b.ok("sync", "log")
    b.ok("memory", "undo")
    assert "Likes black tea." in b.ok("memory", "list")


@pytest.mark.slow
def test_a_folder_gets_its_first_passphrase_by_typing_it_twice(tmp_path: Path) -> None:
    """A mistake would lock the owner out; later a wrong one is refused, so that it is asked for once."""
    folder = tmp_path / "folder"
    folder.mkdir()
    Terminal(tmp_path / "a").ok("remember", "Likes tea.")
    with Person(tmp_path / "a", "--encrypt", str(folder), command="sync") as person:
        for asked in ("Passphrase", "Repeat"):
            person.sees(asked)
            person.types("correct horse")
        person.sees("Sent 1 entry")
    with Person(tmp_path / "a", "--encrypt", str(folder), command="sync") as person:
        person.sees("Passphrase")
        person.types("wrong horse")
        person.sees("the passphrase is wrong")


def test_without_a_terminal_a_passphrase_comes_from_a_file(terminals: tuple[Terminal, Terminal, str]) -> None:
    """The command names the option instead of waiting for what nobody can type."""
    refused = terminals[0].run("sync", "--encrypt", terminals[2])
    assert refused.exit_code == 1
    assert refused.output == "There is no terminal to ask for the passphrase: add --passphrase-file FILE.\n"


def test_sync_says_what_is_missing(terminals: tuple[Terminal, Terminal, str]) -> None:
    """A folder, a passphrase with content, and a home without other users."""
    a, _, folder = terminals
    assert "not a directory" in a.run("sync", "--plain", f"{folder}/none").output
    assert a.ok("sync", "conflicts") == "There are no conflicts.\n"
    assert "There is no conflict 3" in a.run("sync", "resolve", "3", "--keep", "mine").output
    assert "owner" in a.run("--user", "ana", "sync", "--plain", folder).output


def test_a_folder_without_a_passphrase_is_a_decision(tmp_path: Path) -> None:
    """What arrives is trusted like the owner's own words, so nothing is read or written without one or the other."""
    folder = tmp_path / "folder"
    folder.mkdir()
    refused = Terminal(tmp_path / "a").run("sync", str(folder))
    assert refused.exit_code == 1
    assert "--encrypt" in refused.output and "--plain" in refused.output
    assert list(folder.iterdir()) == []
