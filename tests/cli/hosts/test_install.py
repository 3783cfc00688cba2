"""`memoranda install` and `uninstall` show the changes first, write them with consent, and report as text or JSON."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    (tmp_path / "user").mkdir()
    return Terminal(tmp_path / "home")


def test_nothing_is_written_before_a_yes(terminal: Terminal, tmp_path: Path) -> None:
    """Without a terminal to ask in, the change is shown and that is all."""
    assert "Nothing was written. Add --yes" in terminal.refused("install", "cursor")
    assert "Nothing was written. Add --yes" in terminal.ok("install", "cursor", "--dry-run", "--yes")
    answer = json.loads(terminal.refused("install", "cursor", "--json"))
    assert (answer["success"], answer["applied"]) == (False, False)
    assert answer["error"] == "Nothing was written. Add --yes to write these changes."
    assert list((tmp_path / "user").iterdir()) == []
    assert not terminal.home.exists()


def test_install_and_uninstall_say_what_they_did(terminal: Terminal, tmp_path: Path) -> None:
    """With the path of the backup, and what to do next."""
    file = tmp_path / "user" / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{\n  // mine\n}\n")
    told = terminal.json("install", "cursor", "--yes")
    assert told["applied"] is True
    change, hooks = told["changes"]
    assert (change["file"], hooks["backup"]) == (str(file), None)
    assert Path(change["backup"]).read_text() == "{\n  // mine\n}\n"
    assert "memoranda" in change["diff"] and "Restart Cursor" in told["then"]
    assert str(terminal.home) in file.read_text()
    assert "Nothing to do" in terminal.ok("install", "cursor", "--yes")
    assert "Removed Memoranda from" in terminal.ok("uninstall", "cursor", "--yes")
    # The copy has account data in it, and nothing needs it any more.
    assert not (terminal.home / "host-backups" / "cursor").exists()
    assert "memoranda" not in file.read_text() and "// mine" in file.read_text()


def test_uninstalling_deletes_the_files_that_installing_created(terminal: Terminal, tmp_path: Path) -> None:
    """Both of Codex's, with their directory; a dry run shows both."""
    assert terminal.ok("install", "codex", "--dry-run").count("(new file)") == 2
    terminal.ok("install", "codex", "--yes")
    assert terminal.ok("uninstall", "codex", "--dry-run").count("(removed file)") == 2
    answer = terminal.json("uninstall", "codex", "--yes")
    assert [change["removed"] for change in answer["changes"]] == [True, True]
    assert list((tmp_path / "user").iterdir()) == []


def test_a_person_is_asked_in_a_terminal(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer "no" changes nothing."""
    monkeypatch.setattr("memoranda.cli.confirmation.can_ask", lambda invocation: True)
    assert "Write these changes?" in terminal.ok("install", "codex", input="n\n")
    assert not (tmp_path / "user" / ".codex").exists()
    assert "Wrote" in terminal.ok("install", "codex", input="y\n")
    assert (tmp_path / "user" / ".codex" / "config.toml").exists()


def test_credentials_near_the_change_are_not_shown(terminal: Terminal, tmp_path: Path) -> None:
    """Settings of hosts contain credentials."""
    key = "sk-ant-" + "api03-" + hashlib.sha256(b"a key").hexdigest()
    file = tmp_path / "user" / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"apiKey": key}, indent=2))
    assert key not in terminal.refused("install", "cursor")
    assert key not in json.dumps(terminal.json("install", "cursor", "--yes"))
    assert key in file.read_text()


def test_without_a_host_all_are_listed(terminal: Terminal, tmp_path: Path) -> None:
    """Those on this machine, and whether memory is installed."""
    (tmp_path / "user" / ".gemini").mkdir()
    terminal.ok("install", "gemini-cli", "--yes")
    rows = {row["host"]: row for row in terminal.json("install")["hosts"]}
    assert (rows["gemini-cli"]["present"], rows["gemini-cli"]["state"]) == (True, "installed")
    assert (rows["codex"]["present"], rows["codex"]["state"]) == (False, "not installed")
    assert "not found on this machine" in terminal.ok("install")
    file = tmp_path / "user" / ".gemini" / "settings.json"
    file.write_text(file.read_text().replace('"mcp"', '"mcp", "--old"'))
    rows = {row["host"]: row for row in terminal.json("install")["hosts"]}
    assert rows["gemini-cli"]["state"] == "outdated"


def test_a_project_s_files_call_the_program_by_name(terminal: Terminal, tmp_path: Path) -> None:
    """They are for everyone who works on it."""
    terminal.ok("install", "vscode", "--project", str(tmp_path), "--yes")
    entry = json.loads((tmp_path / ".vscode" / "mcp.json").read_text())["servers"]["memoranda"]
    assert (entry["command"], entry["args"]) == ("memoranda", ["mcp"])


def test_a_shared_file_without_the_home_is_reported(terminal: Terminal, tmp_path: Path) -> None:
    """The option is not dropped silently."""
    assert "names no home" in terminal.ok("install", "cursor", "--project", str(tmp_path), "--yes")
    assert "names no home" not in terminal.ok("install", "cursor", "--yes")


def test_unknown_hosts_and_broken_settings_are_refused(terminal: Terminal, tmp_path: Path) -> None:
    """The error lists the known hosts, or names the broken file."""
    assert "claude-code, codex" in terminal.run("install", "emacs").output
    assert terminal.run("install", "claude-desktop", "--project", str(tmp_path)).exit_code == 1
    file = tmp_path / "user" / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{ broken")
    result = terminal.run("install", "cursor", "--yes")
    assert result.exit_code == 2
    assert f"{file} cannot be changed" in result.output
    assert file.read_text() == "{ broken"


@pytest.mark.skipif(sys.platform == "win32", reason="the path of a program there has another form")
def test_a_host_calls_the_program_by_a_path_that_exists(terminal: Terminal, tmp_path: Path) -> None:
    """Desktop programs do not know the PATH."""
    terminal.ok("install", "claude-desktop", "--yes")
    (file,) = (tmp_path / "user").rglob("claude_desktop_config.json")
    assert Path(json.loads(file.read_text())["mcpServers"]["memoranda"]["command"]).is_absolute()


def test_an_installation_that_fails_half_way_changes_nothing(terminal: Terminal, tmp_path: Path) -> None:
    """A server without its hooks would hide the memory."""
    servers, hooks = tmp_path / "user" / ".claude.json", tmp_path / "user" / ".claude" / "settings.json"
    servers.write_text("{}")
    hooks.parent.mkdir()
    hooks.write_text("{}")
    hooks.chmod(0o444)
    result = terminal.run("install", "claude-code", "--yes")
    assert result.exit_code == 2
    assert f"{hooks} is read-only." in result.output and "Nothing was changed." in result.output
    assert (servers.read_text(), hooks.read_text()) == ("{}", "{}")
