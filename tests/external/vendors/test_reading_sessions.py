"""Sessions that only read (schedules, delegates) send nothing of their own, and lose nothing of others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.external.loading import discovery
from memoranda.external.loading.discovery import DiscoveredProvider
from memoranda.external.loading.setup import write_settings
from memoranda.external.outbox.outbox import Outbox
from memoranda.home import config
from memoranda.support.home import Home
from tests.external.vendors.acme import AcmeDouble
from tests.external.vendors.vendor_contract import SECRET
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def double() -> Iterator[AcmeDouble]:
    with AcmeDouble.start() as double:
        yield double


@pytest.fixture
def home(double: AcmeDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = DiscoveredProvider("acme", "bundled", "tests.external.vendors.acme:AcmeProvider")
    monkeypatch.setattr(discovery, "BUNDLED", (found,))
    home = Home.at(tmp_path / "home")
    config.set_value(home, "memory.provider", "acme")
    config.set_value(home, "provider.begin_seconds", str(GIVE_UP))
    config.set_value(home, "provider.mode", "tools")
    write_settings(home.root, "acme", {"url": double.url})
    config.set_secret(home, "ACME_API_KEY", SECRET)
    return home.root


def say(home: Path, text: str, source: str, context: str = "", *, delivered: bool = True) -> None:
    """Have one turn, and wait until nothing is left to deliver, or until a delivery has failed."""
    with memoranda.open(home) as memory, memory.session(source=source, agent_context=context) as session:
        with session.turn(text) as turn:
            turn.done("Noted.")
        outbox = Outbox(home)
        wait_until(lambda: not outbox.backlog("acme") if delivered else outbox.backlog("acme").failing)
        outbox.close()


@pytest.mark.parametrize(("source", "context"), [("cron", ""), ("subagent", ""), ("cli", "cron")])
def test_a_reading_session_delivers_what_another_left_and_nothing_of_its_own(
    source: str, context: str, double: AcmeDouble, home: Path
) -> None:
    """A turn that waited for the service is stored, whichever session is there when it answers again."""
    double.fail("down")
    say(home, "from a person", "cli", delivered=False)
    double.fail(None)
    say(home, "from a schedule", source, context)
    say(home, "from a person again", "cli")
    assert double.stored_texts() == ["from a person Noted.", "from a person again Noted."]


def test_a_memory_write_of_a_schedule_is_not_stored_by_a_later_session(double: AcmeDouble, home: Path) -> None:
    """A job has the context of its own session, whichever session delivers it."""
    outbox = Outbox(home)
    args = {"action": "add", "target": "memory", "content": "from a schedule"}
    outbox.put("acme", "memory_write", "s1", args, {"metadata": {}, "agent_context": "cron"}, key="k1")
    outbox.put("acme", "memory_write", "s2", args | {"content": "from a person"}, {"metadata": {}}, key="k2")
    outbox.release()
    outbox.close()
    say(home, "from a person too", "cli")
    assert sorted(double.stored_texts()) == ["from a person", "from a person too Noted."]
