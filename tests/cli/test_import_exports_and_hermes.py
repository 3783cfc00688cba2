"""`memoranda import` for exports of chat services and for a Hermes home: shown first, then done, then found."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memoranda.cli.main import command
from tests.cli.terminal import Terminal
from tests.importers.exports.samples import claude, edited, spoken, write_json, write_zip
from tests.importers.hermes.homes import HermesHome

pytestmark = pytest.mark.slow


class Importing(Terminal):
    """Runs `memoranda import` as well."""

    def run(self, *arguments: str, input: str | None = None) -> Result:
        if arguments[0] != "import":
            return super().run(*arguments, input=input)
        return CliRunner().invoke(command, ["import", "--home", str(self.home), *arguments[1:]], input=input)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Importing(tmp_path / "home")


@pytest.fixture
def hermes(tmp_path: Path) -> HermesHome:
    home = HermesHome(tmp_path / "hermes")
    home.session("s1", title="Locks")
    home.say("s1", "How do I mend the deadlock?", "Take the locks in one order.")
    (home.root / "memories").mkdir()
    (home.root / "memories" / "MEMORY.md").write_text("Uses pytest\n§\n" + "x" * 3000)
    skill = home.root / "skills" / "dev" / "mend-locks"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: mend-locks\ndescription: How to mend locks\n---\n\nIn order.\n")
    return home


def test_an_export_of_chatgpt_is_imported_and_found(terminal: Terminal, tmp_path: Path) -> None:
    """With its address as the way to continue."""
    file = write_zip(tmp_path / "export.zip", {"conversations-000.json": [edited()]})
    assert "6 would be added" in terminal.ok("import", "chatgpt", "--source", str(file), "--dry-run")
    assert not terminal.home.exists()
    terminal.ok("import", "chatgpt", "--source", str(file), "--yes")
    assert "context manager" in terminal.ok("search", "locks python")
    assert terminal.json("import", "chatgpt", "--source", str(file))["sources"][0]["messages"] == 0


def test_an_export_of_claude_is_found_among_the_downloads(terminal: Terminal) -> None:
    """Nothing has to be named."""
    write_json(Path.home() / "Downloads" / "data" / "conversations.json", [claude("c", spoken("m", "human", "hello"))])
    assert "Claude" in terminal.ok("import")
    assert terminal.json("import", "claude", "--yes")["sources"][0]["messages"] == 1


def test_a_hermes_home_is_shown_and_then_taken_over(terminal: Terminal, hermes: HermesHome) -> None:
    """Sessions, memories and skills in one preview and one report; the second time there is nothing to do."""
    shown = terminal.refused("import", "hermes", "--source", str(hermes.root))
    assert "2 would be added" in shown
    assert "MEMORY.md: 1 to add; 1 omitted" in shown
    assert "skills: 1 to add" in shown
    assert "--yes" in shown
    assert not terminal.home.exists()
    done = terminal.ok("import", "hermes", "--source", str(hermes.root), "--yes")
    assert "MEMORY.md: 1 added; 1 omitted" in done
    assert "'memoranda memory list' and 'memoranda skills list' show them" in done
    assert "were written to" in done
    assert "Uses pytest" in terminal.ok("memory", "list")
    assert "mend-locks" in terminal.ok("skills", "list")
    assert "deadlock" in terminal.ok("search", "deadlock")
    again = terminal.json("import", "hermes", "--source", str(hermes.root), "--yes")
    assert again["sources"][0]["messages"] == 0
    assert again["belongings"]["counts"] == {"memory": {"there": 1, "left": 1}, "user": {}, "skill": {"there": 1}}


def test_only_a_part_of_a_hermes_home_can_be_asked_for(terminal: Terminal, hermes: HermesHome) -> None:
    """Memories without sessions and skills."""
    found = terminal.json("import", "hermes", "--source", str(hermes.root), "--only", "memories", "--yes")
    assert found["sources"] == []
    assert [each["status"] for each in found["belongings"]["entries"]] == ["new", "left"]
    assert found["belongings"]["skills"] == []


def test_hermes_home_is_where_its_variable_says(
    terminal: Terminal, hermes: HermesHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Hermes itself finds it."""
    monkeypatch.setenv("HERMES_HOME", str(hermes.root))
    assert terminal.json("import", "hermes", "--dry-run")["sources"][0]["messages"] == 2


def test_without_a_hermes_home_there_is_nothing_to_import(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and how to name another place."""
    monkeypatch.delenv("HERMES_HOME", raising=False)
    assert "--source" in terminal.ok("import", "hermes")
    assert not terminal.home.exists()


@pytest.mark.parametrize("source", ["chatgpt", "claude", "hermes"])
def test_every_command_explains_itself(terminal: Terminal, source: str) -> None:
    """What it does, and its options."""
    shown = terminal.ok("import", source, "--help")
    assert all(word in shown for word in ("--dry-run", "--yes", "--source", "--json"))
