"""`memoranda provider` with a vendor behind a service: setup with a test call, test, status and forget."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.external.outbox.outbox import Outbox
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin, plain
from tests.external.vendors.acme import AcmeDouble
from tests.external.vendors.vendor_contract import SECRET

pytestmark = pytest.mark.slow

ACME = """
from tests.external.vendors.acme import AcmeProvider


def register(ctx):
    ctx.register_memory_provider(AcmeProvider(ctx.home, ctx.settings))
"""


@pytest.fixture
def double() -> Iterator[AcmeDouble]:
    with AcmeDouble.start() as double:
        yield double


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    # Commands put what .env says into the environment.
    for name in ("ACME_URL", "ACME_API_KEY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    add_plugin(tmp_path / "home", "acme", ACME)
    return Terminal(tmp_path / "home")


def fails(terminal: Terminal, *arguments: str) -> str:
    result = terminal.run(*arguments)
    assert result.exit_code != 0
    return result.output


def set_up(terminal: Terminal, double: AcmeDouble, key: str = SECRET) -> Any:
    return terminal.json("provider", "setup", "acme", "--set", f"url={double.url}", "--set", f"api_key={key}")


def say(home: Path, text: str, user: str | None = None) -> str:
    with memoranda.open(home) as memory, memory.session(user=user) as session:
        with session.turn(text) as turn:
            turn.done("Noted.")
        assert session.id
        return session.id


def test_setup_saves_the_key_and_calls_the_service(terminal: Terminal, double: AcmeDouble) -> None:
    """The key is in .env and nowhere else."""
    told = set_up(terminal, double)
    assert told["test"] == {"ok": True, "answer": "Acme 1.0 answered."}
    assert SECRET in (terminal.home / ".env").read_text()
    assert SECRET not in (terminal.home / "providers" / "acme.json").read_text()


def test_setup_says_what_is_wrong_and_how_to_correct_it(terminal: Terminal, double: AcmeDouble) -> None:
    """The settings stay saved; a second setup with the right key works, although the environment has the wrong one."""
    failed = set_up(terminal, double, "wrong-key-0815")["test"]
    assert not failed["ok"]
    assert "401" in failed["error"]
    assert "memoranda provider setup acme" in failed["error"]
    assert "wrong-key-0815" not in str(failed)
    assert "wrong-key-0815" in os.environ["ACME_API_KEY"]
    assert "401" in terminal.json("provider", "status")["last_call_failed"]
    fixed = set_up(terminal, double)["test"]
    assert fixed == {"ok": True, "answer": "Acme 1.0 answered."}
    assert terminal.json("provider", "status")["last_call_failed"] is None


def test_setup_says_what_to_check_if_nothing_listens(terminal: Terminal, double: AcmeDouble) -> None:
    """Once, with the settings that are not the default, and without a log."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        told = terminal.ok("provider", "setup", "acme", "--set", f"url={address}", "--set", f"api_key={SECRET}")
    assert told.count("nothing listens there, so check whether the service runs") == 1
    assert f"(url = {address})" in told


def test_setup_can_leave_the_service_alone(terminal: Terminal, double: AcmeDouble) -> None:
    """For machines without network."""
    told = terminal.json(
        "provider", "setup", "acme", "--no-test", "--set", f"url={double.url}", "--set", f"api_key={SECRET}"
    )
    assert "test" not in told
    assert double.requests == []


def test_the_test_shows_what_answered_and_deletes_its_turn(terminal: Terminal, double: AcmeDouble) -> None:
    """Nothing stays at the service."""
    set_up(terminal, double)
    report = terminal.json("provider", "test")
    assert (report["service"], report["left"]) == ("Acme 1.0 answered.", [])
    assert all(step["ok"] for step in report["steps"])
    assert double.memories == []
    assert any(method == "DELETE" for method, _ in double.requests)


def test_the_test_names_the_reason_of_a_failure(terminal: Terminal, double: AcmeDouble) -> None:
    """A service that refuses the key."""
    set_up(terminal, double)
    double.fail(401)
    report = fails(terminal, "provider", "test")
    assert "FAILED  its service answers a test call" in report
    assert report.count("The credentials were refused") == 1
    assert "turn" not in report and "recall" not in report
    assert "401" in terminal.json("provider", "status")["last_call_failed"]


def test_a_missing_key_is_named_by_every_command(terminal: Terminal, caplog: pytest.LogCaptureFixture) -> None:
    """Not only that the provider is not ready."""
    terminal.ok("config", "set", "memory.provider", "acme")
    reason = "url (ACME_URL), api_key (ACME_API_KEY) are not set. 'memoranda provider setup acme' asks for them."
    assert f"ready      no  {reason}" in terminal.ok("provider", "status")
    assert terminal.json("provider", "status")["problem"] == reason
    for command in (("use", "acme"), ("test",)):
        assert reason in fails(terminal, "provider", *command)
    caplog.clear()
    terminal.ok("provider", "ask", "tea")
    assert [record.getMessage() for record in caplog.records] == [f"Memory provider acme is not available: {reason}"]


def test_forget_deletes_what_was_sent_for_one_user_or_session(terminal: Terminal, double: AcmeDouble) -> None:
    """Nothing is deleted without consent, and other users keep theirs."""
    set_up(terminal, double)
    first, _ = say(terminal.home, "one"), say(terminal.home, "two")
    say(terminal.home, "three", user="ana")
    planned = json.loads(terminal.refused("provider", "forget", "--json"))
    assert (planned["success"], planned["error"]) == (False, "Nothing is deleted without --yes.")
    assert (planned["dry_run"], planned["received"], planned["other_users"]) == (True, {"turn": 2}, ["ana"])
    assert len(double.memories) == 3
    assert terminal.json("provider", "forget", "--session", first, "--yes")["deleted"] == ["1 turn"]
    assert double.stored_texts() == ["two Noted.", "three Noted."]
    told = terminal.json("provider", "forget", "acme", "--yes")
    assert (told["deleted"], told["remaining"], told["dropped"]) == (["1 turn"], [], 0)
    assert double.stored_texts() == ["three Noted."]
    terminal.ok("provider", "forget", "--user", "ana", "--yes")
    assert double.memories == []


def test_what_still_waits_is_dropped_before_it_is_sent(terminal: Terminal, double: AcmeDouble) -> None:
    """Otherwise it would arrive after everything was deleted."""
    set_up(terminal, double)
    double.fail("down")
    say(terminal.home, "one")
    double.fail(None)
    assert "1 waiting delivery will be dropped." in terminal.ok("provider", "forget", "--dry-run")
    assert terminal.json("provider", "forget", "--dry-run", "--session", "another")["waiting"] == 0
    assert terminal.json("provider", "forget", "--dry-run")["waiting"] == 1
    assert terminal.json("provider", "forget", "--yes")["dropped"] == 1
    outbox = Outbox(terminal.home)
    assert not outbox.backlog("acme")
    outbox.close()
    assert double.memories == []


def test_what_failed_is_shown_and_delivered_by_a_retry(terminal: Terminal, double: AcmeDouble) -> None:
    """The status says what the last call said; a retry says it again, or delivers everything."""
    set_up(terminal, double)
    double.fail(401)
    say(terminal.home, "The zebra is called Otto.")
    assert "ready      yes, but its last call failed: " in terminal.ok("provider", "status")
    assert "401" in terminal.json("provider", "status")["last_call_failed"]
    assert "acme: 0 delivered, 1 not yet: GET /memories" in fails(terminal, "provider", "retry")
    double.fail(None)
    assert "acme: 1 delivered" in terminal.ok("provider", "retry", "acme")
    assert len(double.memories) == 1
    assert terminal.json("provider", "status")["last_call_failed"] is None
    assert "acme: 0 delivered" in terminal.ok("provider", "retry")


def test_a_retry_waits_for_turns_that_are_recorded_and_not_queued(terminal: Terminal, double: AcmeDouble) -> None:
    """A process that was killed has left them in the record only."""
    set_up(terminal, double)
    with memoranda.open(terminal.home) as memory, memory.session() as session:
        # Closed before the turns: nothing reads the record until the next session.
        session.external.close()
        for number in range(20):
            with session.turn(f"This is turn {number}.") as turn:
                turn.done("Noted.")
    assert "acme: 20 delivered" in terminal.ok("provider", "retry")
    assert len(double.memories) == 20


def test_a_provider_that_cannot_delete_says_so(terminal: Terminal) -> None:
    """Nothing is changed."""
    add_plugin(terminal.home, "plain", plain("plain"))
    terminal.ok("provider", "use", "plain")
    assert "has no way to delete" in fails(terminal, "provider", "forget", "--yes")
    assert "Name one" in fails(Terminal(terminal.home.parent / "empty"), "provider", "forget")


def test_facts_on_this_machine_are_forgotten_too(terminal: Terminal) -> None:
    """Those of a session, or all of them."""
    terminal.ok("provider", "use", "holographic")
    for text in ("one", "two"):
        with memoranda.open(terminal.home) as memory, memory.session() as session:
            session.call("fact_store", {"action": "add", "content": f"The zebra number {text} is called Otto."})
    assert "no record" in terminal.ok("provider", "forget", "--dry-run")
    assert terminal.json("provider", "forget", "--session", session.id or "", "--yes")["deleted"] == ["1 fact"]
    assert terminal.json("provider", "forget", "--yes")["deleted"] == ["1 fact"]
    assert terminal.json("provider", "forget", "--yes")["deleted"] == []


def test_the_status_shows_the_name_at_the_vendor(terminal: Terminal, double: AcmeDouble) -> None:
    """And never the key."""
    set_up(terminal, double)
    status = terminal.ok("provider", "status")
    assert "user_at_vendor default" in status
    assert SECRET not in status


def test_deleting_a_conversation_drops_what_the_vendor_would_still_receive(
    terminal: Terminal, double: AcmeDouble
) -> None:
    """Neither the queue nor a later delivery has its text; what the vendor has already is named."""
    set_up(terminal, double)
    sent = say(terminal.home, "one that was delivered")
    double.fail("down")
    waiting = say(terminal.home, "one that waits for a while")
    told = terminal.json("sessions", "delete", waiting, "--yes")
    assert told["dropped_deliveries"] > 0
    assert b"one that waits" not in b"".join(path.read_bytes() for path in terminal.home.glob("home.db*"))
    double.fail(None)
    say(terminal.home, "another one")
    assert double.stored_texts() == ["one that was delivered Noted.", "another one Noted."]
    assert "provider forget acme --session ID" in terminal.ok("sessions", "delete", sent, "--yes")
