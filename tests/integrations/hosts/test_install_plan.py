"""Each host gets our entry in its own format and file, beside existing settings, and loses it when we uninstall."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.integrations.hosts import codex
from memoranda.integrations.hosts.host import HostEnvironment, LaunchCommand, is_our_hook, no_plugin
from memoranda.integrations.hosts.install_plan import plan_install, plan_uninstall
from memoranda.integrations.hosts.settings_change import CreatedFiles, SettingsError, apply_changes
from memoranda.integrations.hosts.supported_hosts import CLAUDE_CODE_EVENTS, CURSOR_EVENTS, GEMINI_CLI_EVENTS, HOSTS
from memoranda.support.relaxed_json import parse
from tests.conftest import mode

pytestmark = pytest.mark.slow

PROGRAM = LaunchCommand(("/opt/bin/memoranda",), ("--home", "/data/my memory"))
SERVER = {"command": "/opt/bin/memoranda", "args": ["mcp", "--home", "/data/my memory"]}
HOOKS = {
    "claude-code": (".claude/settings.json", CLAUDE_CODE_EVENTS),
    "codex": (".codex/hooks.json", tuple(codex.EVENTS)),
    "gemini-cli": (".gemini/settings.json", GEMINI_CLI_EVENTS),
}
_each = pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.plugin is no_plugin])


def _environment(
    user_home: Path, platform: str = "linux", project: Path | None = None, **variables: str
) -> HostEnvironment:
    return HostEnvironment(user_home, platform, variables, project)


def _install(name: str, environment: HostEnvironment, program: LaunchCommand = PROGRAM) -> int:
    changes = plan_install(HOSTS[name], environment, program)
    apply_changes(changes, environment.user_home / "backups")
    return len(changes)


def _uninstall(name: str, environment: HostEnvironment) -> None:
    backups = environment.user_home / "backups"
    apply_changes(plan_uninstall(HOSTS[name], environment, CreatedFiles(backups)), backups)


def _settings(file: Path) -> dict[str, Any]:
    if file.suffix == ".toml":
        return tomllib.loads(file.read_text())
    found = parse(file.read_text()).value
    assert isinstance(found, dict)
    return found


PLACES = {
    "claude-code": (".claude.json", {"mcpServers": {"memoranda": {
        "type": "stdio", **SERVER, "args": [*SERVER["args"], "--bare"]}}}),
    "codex": (".codex/config.toml", {"mcp_servers": {"memoranda": {
        **SERVER, "required": True, "startup_timeout_sec": 60}}}),
    "cursor": (".cursor/mcp.json", {"mcpServers": {"memoranda": SERVER}}),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", {"mcpServers": {"memoranda": SERVER}}),
    "vscode": (".config/Code/User/mcp.json", {"servers": {"memoranda": {"type": "stdio", **SERVER}}}),
    "gemini-cli": (".gemini/settings.json", {
        "mcpServers": {"memoranda": {**SERVER, "args": [*SERVER["args"], "--bare"]}},
        "hooks": {event: [{"hooks": [{
            "type": "command", "command": f"/opt/bin/memoranda hook gemini-cli {event} --home '/data/my memory'",
            "name": "memoranda", "timeout": 10_000}]}] for event in ("BeforeAgent", "AfterAgent", "SessionEnd")}}),
    "opencode": (".config/opencode/opencode.json", {
        "$schema": "https://opencode.ai/config.json",
        "mcp": {"memoranda": {"type": "local", "command": [SERVER["command"], *SERVER["args"], "--bare"]}}}),
}  # fmt: skip


@_each
def test_a_host_without_settings_gets_exactly_its_own_form(name: str, tmp_path: Path) -> None:
    """In the file in which it looks; a second installation finds nothing to do; uninstalling leaves nothing."""
    environment = _environment(tmp_path)
    file, expected = PLACES[name]
    host = HOSTS[name]
    assert _install(name, environment) == len(host.files(environment)) + len(host.owned_files(environment))
    assert _settings(tmp_path / file) == expected
    assert plan_install(HOSTS[name], environment, PROGRAM) == []
    _uninstall(name, environment)
    assert list(tmp_path.iterdir()) == []
    assert plan_uninstall(HOSTS[name], environment) == []


@_each
def test_an_empty_file_that_was_there_before_stays(name: str, tmp_path: Path) -> None:
    """With its bytes, and so does its directory."""
    environment = _environment(tmp_path)
    files = [file.path for file in HOSTS[name].files(environment)]
    for text in (b"", b" \r\n", b"\xef\xbb\xbf", b"{}\n"):
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"" if file.suffix == ".toml" else text)
        before = {file: file.read_bytes() for file in files}
        _install(name, environment)
        _install(name, environment, LaunchCommand(("/moved/memoranda",)))
        _uninstall(name, environment)
        assert {file: file.read_bytes() for file in files} == before
        assert not (tmp_path / "backups" / "created.json").exists()


@_each
def test_a_file_that_the_host_wrote_to_meanwhile_stays(name: str, tmp_path: Path) -> None:
    """Without our entries; a directory that has something else in it stays too."""
    environment = _environment(tmp_path)
    _install(name, environment)
    files = [file.path for file in HOSTS[name].files(environment)]
    other = files[-1].parent / "other"
    other.write_text("theirs")
    for file in files:
        text = file.read_text()
        file.write_text(text + "# mine\n" if file.suffix == ".toml" else text.replace("{", '{"theirs": 1,', 1))
    _uninstall(name, environment)
    assert "# mine\n" in files[0].read_text() if name == "codex" else _settings(files[0])["theirs"] == 1
    for file in files:
        assert "memoranda" not in file.read_text()
        file.unlink()
    assert other.read_text() == "theirs"
    assert plan_uninstall(HOSTS[name], environment, CreatedFiles(tmp_path / "backups")) == []


@_each
def test_uninstalling_what_was_never_installed_changes_nothing(name: str, tmp_path: Path) -> None:
    """No file is created."""
    assert plan_uninstall(HOSTS[name], _environment(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


@_each
def test_the_rest_of_the_settings_keeps_every_byte(name: str, tmp_path: Path) -> None:
    """Comments, order and layout; afterwards the file is what it was before."""
    environment = _environment(tmp_path)
    files = HOSTS[name].files(environment)
    for file in files:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        key = {"vscode": "servers", "opencode": "mcp"}.get(name, "mcpServers")
        text = '{\n    // mine\n    "KEY": {\n        "other": {"command": "x"}\n    },\n    "z": [1,2] // odd\n}\n'
        text = text.replace("KEY", key)
        if file.language == "toml":
            text = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "x" # y\n'
        file.path.write_text(text)
    before = {file.path: file.path.read_text() for file in files}
    _install(name, environment)
    for path, text in before.items():
        now = path.read_text()
        assert now != text
        characters = iter(now)
        assert all(each in characters for each in text), now
        assert "mine" in now and "other" in now
    _uninstall(name, environment)
    assert {path: path.read_text() for path in before} == before


@_each
def test_what_a_person_added_to_our_entry_stays(name: str, tmp_path: Path) -> None:
    """When the program moves, only how it is called is brought up to date."""
    environment = _environment(tmp_path)
    _install(name, environment)
    file = tmp_path / PLACES[name][0]
    settings = _settings(file)
    key = next(key for key in settings if isinstance(settings[key], dict))
    if file.suffix == ".toml":
        file.write_text(file.read_text() + '\n[mcp_servers.memoranda.env]\nMINE = "1"\n')
    else:
        settings[key]["memoranda"]["env"] = {"MINE": "1"}
        file.write_text(json.dumps(settings))
    assert _install(name, environment, LaunchCommand(("memoranda",)))
    entry = _settings(file)[key]["memoranda"]
    assert entry["env"] == {"MINE": "1"}
    assert entry["command"] in ("memoranda", ["memoranda", "mcp", "--bare"])


@pytest.mark.parametrize("name", HOSTS)
def test_broken_or_odd_settings_are_not_changed(name: str, tmp_path: Path) -> None:
    """The error names the file."""
    environment = _environment(tmp_path)
    file = HOSTS[name].files(environment)[-1].path
    file.parent.mkdir(parents=True, exist_ok=True)
    odd = b'{"mcpServers": 3, "servers": 3, "mcp": 3, "hooks": 3, "memory": 3, "plugins": 3}'
    for text in (b"{ broken", b"\xff\xfe{}", b"[1]", odd):
        if file.suffix == ".toml" and text == b"[1]":
            continue
        file.write_bytes(text)
        with pytest.raises(SettingsError, match=file.name):
            plan_install(HOSTS[name], environment, PROGRAM)
        assert file.read_bytes() == text


def test_hosts_are_found_through_their_own_variables(tmp_path: Path) -> None:
    """And in the directory where each system keeps settings."""

    def first(name: str, environment: HostEnvironment) -> str:
        return HOSTS[name].files(environment)[0].path.relative_to(tmp_path).as_posix()

    elsewhere = str(tmp_path / "x")
    assert first("codex", _environment(tmp_path, CODEX_HOME=elsewhere)) == "x/config.toml"
    moved = HOSTS["claude-code"].files(_environment(tmp_path, CLAUDE_CONFIG_DIR=elsewhere))
    assert [file.path.relative_to(tmp_path).as_posix() for file in moved] == ["x/.claude.json", "x/settings.json"]
    assert first("opencode", _environment(tmp_path, XDG_CONFIG_HOME=elsewhere)) == "x/opencode/opencode.json"
    desktop = "Claude/claude_desktop_config.json"
    assert first("claude-desktop", _environment(tmp_path, "darwin")) == f"Library/Application Support/{desktop}"
    assert first("claude-desktop", _environment(tmp_path, "win32", APPDATA=elsewhere)) == f"x/{desktop}"
    assert first("vscode", _environment(tmp_path, "darwin")) == "Library/Application Support/Code/User/mcp.json"


def test_a_project_has_its_own_files(tmp_path: Path) -> None:
    """Hooks are commands of one machine, so they go to the file that is not shared."""
    environment = _environment(tmp_path / "me", project=tmp_path)
    found = {
        file.path.relative_to(tmp_path).as_posix()
        for host in HOSTS.values()
        if host.has_projects
        for file in host.files(environment)
    }
    assert found == {
        ".mcp.json", ".claude/settings.local.json", ".codex/config.toml", ".cursor/mcp.json", ".vscode/mcp.json",
        ".gemini/settings.json", "opencode.json",
    }  # fmt: skip


def test_opencode_gets_the_entry_in_the_format_of_its_file(tmp_path: Path) -> None:
    """Version 2 keeps servers in a separate map, and either version reads .jsonc."""
    file = tmp_path / ".config" / "opencode" / "opencode.jsonc"
    file.parent.mkdir(parents=True)
    text = '{\n  "mcp": {\n    "servers": {\n      "other": {"type": "local", "command": ["x"]},\n    },\n  },\n}\n'
    file.write_text(text)
    _install("opencode", _environment(tmp_path))
    assert list(_settings(file)["mcp"]["servers"]) == ["other", "memoranda"]
    assert _settings(file)["mcp"].keys() == {"servers"}
    _uninstall("opencode", _environment(tmp_path))
    assert file.read_text() == text


def test_cursor_has_its_hooks_in_a_list_without_groups(tmp_path: Path) -> None:
    """Beside those of others, which stay; a new file names its version."""
    file = tmp_path / ".cursor" / "hooks.json"
    _install("cursor", _environment(tmp_path))
    new = _settings(file)
    assert (new["version"], list(new["hooks"])) == (1, list(CURSOR_EVENTS))
    command = "/opt/bin/memoranda hook cursor stop --home '/data/my memory'"
    assert new["hooks"]["stop"] == [{"command": command}]
    text = json.dumps({"version": 1, "hooks": {"stop": [{"command": "./audit.sh"}], "preToolUse": ["odd"]}}, indent=2)
    file.write_text(text)
    _install("cursor", _environment(tmp_path))
    assert _settings(file)["hooks"]["stop"] == [{"command": "./audit.sh"}, {"command": command}]
    _install("cursor", _environment(tmp_path), LaunchCommand(("/moved/memoranda",)))
    assert _settings(file)["hooks"]["stop"][1] == {"command": "/moved/memoranda hook cursor stop"}
    _uninstall("cursor", _environment(tmp_path))
    assert file.read_text() == text


def test_a_project_of_cursor_has_a_rule(tmp_path: Path) -> None:
    """The same for everyone, without a path or a memory in it; it goes with the rest."""
    environment = _environment(tmp_path / "me", project=tmp_path)
    _install("cursor", environment)
    rule = tmp_path / ".cursor" / "rules" / "memoranda.mdc"
    assert rule.read_text().startswith("---\ndescription: ") and "alwaysApply: true" in rule.read_text()
    assert str(tmp_path) not in rule.read_text() and mode(rule) == 0o644
    _uninstall("cursor", environment)
    assert not (tmp_path / ".cursor").exists()


def test_the_plugin_of_opencode_is_ours_alone(tmp_path: Path) -> None:
    """It calls the program that installed it; a file of the user in its place stays, and nothing is installed."""
    environment = _environment(tmp_path)
    _install("opencode", environment)
    plugin = tmp_path / ".config" / "opencode" / "plugins" / "memoranda.js"
    assert 'const COMMAND = ["/opt/bin/memoranda", "hook", "opencode"]\n' in plugin.read_text()
    assert 'const OPTIONS = ["--home", "/data/my memory"]\n' in plugin.read_text()
    assert _install("opencode", environment, LaunchCommand(("/moved/memoranda",))) == 2
    assert "/moved/memoranda" in plugin.read_text() and "/opt" not in plugin.read_text()
    plugin.write_text("export const Mine = async () => ({})\n")
    with pytest.raises(SettingsError, match="Memoranda did not write it"):
        plan_install(HOSTS["opencode"], environment, PROGRAM)
    _uninstall("opencode", environment)
    assert plugin.read_text() == "export const Mine = async () => ({})\n"


_commands = st.sampled_from(["echo hi", "/x/memoranda hook HOST Stop", "memoranda hook other Stop", "'", ""])
_groups = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": _commands}), max_size=3)},
        optional={"matcher": st.just("startup")},
    )
    | st.just("odd"),
    max_size=3,
)


@pytest.mark.parametrize("name", HOOKS)
@given(st.dictionaries(st.sampled_from(["Stop", "SessionStart", "PreToolUse"]), _groups))
def test_hooks_of_others_are_never_changed(
    tmp_path_factory: pytest.TempPathFactory, name: str, hooks: dict[str, Any]
) -> None:
    """Each event has one hook of ours afterwards, and all others in their order."""
    hooks = json.loads(json.dumps(hooks).replace("HOST", name))
    home = tmp_path_factory.mktemp("person")
    file = home / HOOKS[name][0]
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": hooks, "model": "opus"}, indent=2))
    _install(name, _environment(home))
    now = _settings(file)
    assert {event: found for event, groups in now["hooks"].items() if (found := _of_others(groups, name))} == {
        event: found for event, groups in hooks.items() if (found := _of_others(groups, name))
    }
    for event in HOOKS[name][1]:
        assert _ours(now["hooks"][event], name) == [f"/opt/bin/memoranda hook {name} {event} --home '/data/my memory'"]
    assert plan_install(HOSTS[name], _environment(home), PROGRAM) == []
    _uninstall(name, _environment(home))
    left = _settings(file)
    assert left["model"] == "opus"
    assert not any(_ours(groups, name) for groups in left.get("hooks", {}).values())


def _of_others(groups: list[Any], name: str) -> list[str]:
    return [command for command in _all(groups) if not is_our_hook(command, name)]


def _ours(groups: list[Any], name: str) -> list[str]:
    return [command for command in _all(groups) if is_our_hook(command, name)]


def _all(groups: list[Any]) -> list[str]:
    return [each["command"] for group in groups if isinstance(group, dict) for each in group["hooks"]]


def test_codex_waits_for_the_server_unless_the_user_decided_otherwise(tmp_path: Path) -> None:
    """A value that the user gave stays; what a project shares never stops the Codex of others."""
    _install("codex", _environment(tmp_path))
    file = tmp_path / ".codex" / "config.toml"
    file.write_text(file.read_text().replace("required = true", "required = false"))
    _install("codex", _environment(tmp_path), LaunchCommand(("/moved/memoranda",)))
    entry = _settings(file)["mcp_servers"]["memoranda"]
    assert (entry["required"], entry["command"]) == (False, "/moved/memoranda")
    assert _install("codex", _environment(tmp_path, project=tmp_path / "project")) == 1
    shared = _settings(tmp_path / "project" / ".codex" / "config.toml")["mcp_servers"]["memoranda"]
    assert shared == {"command": "memoranda", "args": ["mcp"]}


def test_what_a_project_shares_is_the_same_for_everyone(tmp_path: Path) -> None:
    """By name, without a home, and with the memory in the instructions for people without hooks."""
    environment = _environment(tmp_path / "me", project=tmp_path)
    program = LaunchCommand(PROGRAM.words, (*PROGRAM.options, "--profile", "work"))
    for name, host in HOSTS.items():
        if host.has_projects:
            _install(name, environment, program)
    shared = _settings(tmp_path / ".mcp.json")["mcpServers"]["memoranda"]
    assert shared == {"type": "stdio", "command": "memoranda", "args": ["mcp", "--profile", "work"]}
    for place in (".codex/config.toml", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json",
                  "opencode.json"):  # fmt: skip
        assert "/" not in (tmp_path / place).read_text().replace("https://opencode.ai/config.json", "")


def test_a_project_s_hooks_are_of_this_machine(tmp_path: Path) -> None:
    """By path, with the home that was given, in a file that only its owner reads."""
    _install("claude-code", _environment(tmp_path / "me", project=tmp_path))
    local = tmp_path / ".claude" / "settings.local.json"
    (command,) = _ours(_settings(local)["hooks"]["Stop"], "claude-code")
    assert command == "/opt/bin/memoranda hook claude-code Stop --home '/data/my memory'"
    assert (mode(local), mode(tmp_path / ".mcp.json")) == (0o600, 0o644)
