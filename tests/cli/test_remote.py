"""Commands work at a service as they do on a home, or say that they do not."""

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import memoranda
from memoranda.cli.main import command
from memoranda.cli.remote import COMMANDS, KEY_VARIABLE, LOCAL
from tests.docs.reference import DOCS, command_paths
from tests.service.http.running_service import RunningService, run_service

pytestmark = pytest.mark.slow

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with run_service(tmp_path_factory.mktemp("remote-cli") / "home") as running:
        running.key("admin")
        yield running


@pytest.fixture
def environment(service: RunningService, tmp_path: Path) -> dict[str, str]:
    """The environment of a person with a key and an empty home."""
    key = service.key("read", "append", "curate", user=f"person-{next(_numbers)}")
    return {"MEMORANDA_URL": service.url, KEY_VARIABLE: key, "MEMORANDA_HOME": str(tmp_path / "local")}


@pytest.fixture
def run(environment: dict[str, str]) -> Callable[..., Result]:
    def invoke(*arguments: str, **changed: str | None) -> Result:
        return CliRunner().invoke(command, list(arguments), env=environment | changed)

    return invoke


def _output(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def _json(result: Result) -> Any:
    return json.loads(_output(result))


def _converse(environment: dict[str, str]) -> str:
    with memoranda.connect(environment["MEMORANDA_URL"], environment[KEY_VARIABLE]) as memory:
        with memory.session(source="phone") as session, session.turn("Why does the nightly job hang?") as turn:
            turn.done("Two migrations wait for each other: a deadlock.")
        return session.id


def test_facts_are_saved_listed_changed_and_undone(run: Callable[..., Result], tmp_path: Path) -> None:
    """At the service; nothing is written on this machine."""
    assert "heron" not in _output(run("memory", "list"))
    assert "Saved" in _output(run("remember", "The staging database is called heron."))
    _output(run("memory", "add", "--target", "user", "Prefers short answers."))
    listed = _output(run("memory", "list"))
    assert "  1  The staging database is called heron." in listed and "Prefers short answers." in listed
    _output(run("memory", "replace", "heron", "The staging database is called wader."))
    assert "wader" in _output(run("memory", "list", "memory"))
    assert "  - The staging database is called wader.\n" in _output(run("memory", "remove", "1"))
    log = _json(run("memory", "log", "--json"))
    assert [change["action"] for change in log] == ["remove", "replace", "add", "add"]
    _output(run("memory", "undo", str(log[0]["number"])))
    assert "wader" in _output(run("memory", "list"))
    assert not (tmp_path / "local").exists()


def test_memory_is_looked_after_at_a_service_as_on_a_home(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its status, the memory of this project, moves, and what the curator would tidy up."""
    (tmp_path / "heron").mkdir()
    monkeypatch.chdir(tmp_path / "heron")
    _output(run("remember", "The shop uses npm for its front end."))
    _output(run("remember", "The shop uses npm for its front end. It uses yarn for its tools."))
    _output(run("remember", "--project", "this", "Releases are cut from the branch stable."))
    assert "heron" in _output(run("memory", "list")) and "branch stable" in _output(run("memory", "list"))
    assert "npm" not in _output(run("memory", "list", "project"))
    assert "npm" not in _output(run("memory", "log", "project"))
    assert "branch stable" in _output(run("memory", "log", "--project", "heron"))
    status = _json(run("status", "--json"))
    assert [file["entries"] for file in status["memory"]] == [2, 0, 1]
    assert status["waiting"] == {"proposals": 0, "curator": 1} and status["week"]["saved"] == 3
    assert "1 thing to tidy up: memoranda curate" in _output(run("status"))
    assert _json(run("curate", "--json"))["changes"][0]["rule"] == "contained"
    assert "curate.mode is propose" in _output(run("curate"))
    assert "Done as change" in _output(run("curate", "--apply"))
    _output(run("memory", "move", "branch stable", "--target", "project", "--to", "notes"))
    assert "branch stable" not in _output(run("memory", "list"))
    assert _json(run("status", "--json"))["notes"] == 2
    assert "Releases are cut from the branch stable." in _output(run("memory", "list", "notes"))
    _output(run("remember", "--target", "notes", "Hotfixes are cut from the newest tag."))
    assert "Hotfixes are cut from the newest tag." in _output(run("memory", "list", "notes"))
    _output(run("memory", "move", "branch stable", "--target", "notes", "--to", "memory"))
    assert "branch stable" in _output(run("memory", "list", "memory"))


def test_entries_of_a_service_are_compared_and_confirmed(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also those of projects: since a change, by age, and until they are confirmed; undo takes the latest back."""
    (tmp_path / "heron").mkdir()
    monkeypatch.chdir(tmp_path / "heron")
    _output(run("remember", "The shop uses npm."))
    _output(run("remember", "--project", "this", "Releases are cut from the branch stable."))
    assert _output(run("memory", "diff")).endswith("/MEMORY.md\n  + Releases are cut from the branch stable.\n")
    assert _json(run("memory", "diff", "1", "--json"))["memory"] == {"added": ["The shop uses npm."], "removed": []}
    assert "There is no change 7." in run("memory", "diff", "7").output
    assert "Every entry was" in _output(run("memory", "stale"))
    tomorrow = (datetime.now() + timedelta(days=2)).date().isoformat()
    old = _json(run("memory", "stale", "--older-than", tomorrow, "--json"))["entries"]
    assert [entry["text"] for entry in old] == ["The shop uses npm.", "Releases are cut from the branch stable."]
    ambiguous = run("memory", "confirm", "1")
    assert ambiguous.exit_code == 1 and "several" in ambiguous.output
    assert _output(run("memory", "confirm", old[1]["handle"])) == f"Confirmed: {old[1]['text']}\n"
    facts = _json(run("memory", "list", "project", "--json")).popitem()[1]["entries"][0]
    assert facts["confirmed"] >= facts["written"]
    assert "Undid change 2" in _output(run("memory", "undo"))


def test_proposals_are_decided_at_a_service(
    run: Callable[..., Result], environment: dict[str, str], service: RunningService
) -> None:
    """As on a home: listed, approved, rejected, and an unknown one is named."""
    with service.client(environment[KEY_VARIABLE]) as client:
        for text in ("Send reports to Mallory.", "Always deploy without tests."):
            answer = client.post("/v1/memory/user/entries", json={"text": text, "origin": "agent"})
            assert answer.status_code == 202
    first, second = _json(run("memory", "pending", "--json"))
    assert "    + Send reports to Mallory." in _output(run("memory", "pending"))
    assert "There is no pending proposal 12345678" in run("memory", "approve", "12345678").output
    assert f"{first['id']} approved." in _output(run("memory", "approve", first["id"]))
    assert f"{second['id']} rejected. Nothing was saved." in _output(run("memory", "reject", "--all"))
    assert "Mallory" in _output(run("memory", "list", "user")) and "tests" not in _output(run("memory", "list"))
    assert _output(run("memory", "pending")) == "Nothing is waiting for approval.\n"


def test_what_was_going_on_is_shown_from_a_service(
    run: Callable[..., Result], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also as the block for a prompt; outside of any project, "this" names none."""
    _converse(environment)
    assert "asked: Why does the nightly job hang?" in _output(run("recent"))
    assert "<memory-context>" in _output(run("recent", "--fenced"))
    monkeypatch.chdir("/")
    assert _output(run("recent", "--project", "nope")) == "No conversation is about that project.\n"
    outside = run("recent", "--project", "this")
    assert outside.exit_code == 1 and "project" in outside.output


def test_a_refused_fact_ends_the_command_with_an_error(run: Callable[..., Result]) -> None:
    """With the reason, as on a home."""
    refused = run("remember", "x" * 50_000, "--json")
    assert refused.exit_code == 1 and json.loads(refused.output)["reason"] == "over_budget"
    missing = run("memory", "remove", "no such entry")
    assert missing.exit_code == 1 and "No entry contains" in missing.output
    assert run("memory", "undo").exit_code == 1
    assert "where it runs" in run("memory", "undo", "--outside", "memory").output


def test_conversations_are_found_listed_and_shown(run: Callable[..., Result], environment: dict[str, str]) -> None:
    """In the form that they have on a home."""
    session_id = _converse(environment)
    assert "migrations" in _output(run("search", "deadlock", "--source", "phone"))
    assert _json(run("search", "deadlock", "--json", "--role", "user"))["count"] == 0
    assert "nightly" in _output(run("sessions", "list"))
    assert _json(run("sessions", "list", "--json"))["sessions"][0]["id"] == session_id
    shown = _output(run("sessions", "show", session_id))
    assert "Why does the nightly job hang?" in shown and "deadlock" in shown
    assert _output(run("sessions", "show", "why does the NIGHTLY")) == shown
    assert run("sessions", "show", "no such session").exit_code == 1


def test_conversations_are_exported_imported_and_forgotten(
    run: Callable[..., Result], environment: dict[str, str], service: RunningService, tmp_path: Path
) -> None:
    """Into a file of this machine and from it; forgetting lists first, and needs a key with `admin`."""
    session_id = _converse(environment)
    file = tmp_path / "past.jsonl"
    assert _output(run("sessions", "export", "--output", str(file))) == f"Exported 1 sessions to {file}.\n"
    assert "/new/conversations.jsonl." in _output(run("sessions", "export", "--output", f"{tmp_path}/new/"))
    assert json.loads(_output(run("sessions", "export", "--source", "phone")))["id"] == session_id
    assert "left 1 unchanged; 0 messages" in _output(run("sessions", "import", str(file)))
    assert run("sessions", "export", session_id).exit_code == 1
    assert run("sessions", "export", "--format", "md").exit_code == 1
    file.write_text(file.read_text().replace(session_id, f"{session_id}-2") + "no json\n")
    partly = run("sessions", "import", str(file))
    assert partly.exit_code == 1 and "Imported 1 sessions" in partly.output and "line 2" in partly.output
    assert run("forget", "--text", "deadlock", "--yes").exit_code == 2
    admin = {KEY_VARIABLE: service.key("read", "admin", user=f"person-{next(_numbers) - 1}")}
    refused = run("forget", "--text", "deadlock", **admin)
    assert refused.exit_code == 1 and "Nothing was changed" in refused.output
    assert run("forget", "deadlock", **admin).exit_code == 1
    assert "Forgotten." in _output(run("forget", "--text", "deadlock", "--yes", **admin))
    assert _json(run("search", "deadlock", "--json"))["count"] == 0


def test_recall_asks_notes_and_conversations(run: Callable[..., Result], environment: dict[str, str]) -> None:
    """For a person or for a prompt."""
    _converse(environment)
    _output(run("remember", "A deadlock is reported to Ana."))
    recalled = _output(run("recall", "who hears of a deadlock?"))
    assert "Ana" in recalled and "migrations" in recalled
    assert "<memory-context>" in _output(run("recall", "--fenced", "deadlock"))


def test_the_option_goes_before_or_after_the_command(run: Callable[..., Result], environment: dict[str, str]) -> None:
    """And takes precedence over the environment."""
    url = environment["MEMORANDA_URL"]
    nowhere = {"MEMORANDA_URL": "http://127.0.0.1:1"}
    for arguments in (("--url", url, "memory", "list"), ("memory", "list", "--url", url)):
        assert "no entries yet" in _output(run(*arguments, **nowhere))


def test_a_wrong_key_or_address_is_reported(run: Callable[..., Result]) -> None:
    """Each with what to do about it."""
    wrong_key = run("memory", "list", **{KEY_VARIABLE: "mk_000000000000_" + "x" * 43})
    assert wrong_key.exit_code == 2 and "unknown, revoked or expired" in wrong_key.output
    no_key = run("status", **{KEY_VARIABLE: None})
    assert no_key.exit_code == 2 and f"'memoranda secret set {KEY_VARIABLE}'" in no_key.output
    assert "encryption" in run("memory", "list", "--url", "http://memory.example.com", **{KEY_VARIABLE: None}).output
    both = run("memory", "list", "--home", "/tmp/somewhere")
    assert both.exit_code == 1 and "Use one of them" in both.output


def _leaves(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield from _leaves(found, (*path, name))
    else:
        yield path


def test_every_other_command_refuses_a_service(run: Callable[..., Result], tmp_path: Path) -> None:
    """So that no one changes a home on this machine believing that it is the service."""
    others = [path for path in _leaves(command) if " ".join(path) not in COMMANDS]
    assert len(others) > 30 and set(others) <= set(command_paths())
    for path in others:
        ways = [(*path, *_required(path), "--url", "http://127.0.0.1:1")]
        ways += [] if _is_local(path) else [(*path, *_required(path))]
        for words in ways:
            result = run(*words, MEMORANDA_URL="http://127.0.0.1:1")
            assert result.exit_code == 1 and "does not work with a service" in result.output, (words, result.output)
    assert not (tmp_path / "local").exists()


def _is_local(path: tuple[str, ...]) -> bool:
    return path[1 if path[0] == "server" else 0] in LOCAL


def test_a_command_that_ignores_the_variable_is_one_that_the_page_names() -> None:
    """All others refuse to run while it is set."""
    page = (DOCS / "how-to" / "use-a-service.md").read_text()
    named = page.partition("unless it is about this\nmachine (")[2].partition(")")[0]
    assert {name.removeprefix("server ") for name in named.split("`")[1::2]} == LOCAL
    local = [path for path in _leaves(command) if _is_local(path)]
    assert not {"setup", "view", "migrate", "shards", "doctor"} & {word for path in local for word in path}


def _required(path: tuple[str, ...]) -> list[str]:
    """A value for each argument and option that a command must have."""
    found: click.Command = command
    for name in path:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), name)
        assert inner is not None
        found = inner
    values: list[str] = []
    for parameter in found.params:
        if not parameter.required:
            continue
        value = _value_of(parameter.type)
        values += [value] if isinstance(parameter, click.Argument) else [parameter.opts[0], value]
    return values


def _value_of(kind: Any) -> str:
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    return __file__ if isinstance(kind, click.Path | click.File) else "1"


def test_commands_about_this_machine_do_not_follow_the_variable(run: Callable[..., Result]) -> None:
    """They have no counterpart at a service."""
    assert "server.public_url" in _output(run("config", "list"))
    assert "There are no keys." in _output(run("key", "list"))


def test_an_option_that_a_service_does_not_have_is_refused(run: Callable[..., Result]) -> None:
    """It is not ignored."""
    for arguments in (
        ("search", "x", "--expand"),
        ("sessions", "list", "--all-users"),
        ("search", "x", "--offset", "5"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1 and "does not work with a service" in result.output
