"""A provider is attached in the background: the session waits briefly, once, and continues without it."""

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.external import attach
from memoranda.external.delivery import Delivery
from memoranda.external.guarded_call import CallResult, PendingCall
from memoranda.external.health import read_status
from memoranda.external.holographic import HolographicProvider
from memoranda.external.outbox.jobs import Found
from memoranda.external.outbox.record_feed import JobContent, RecordFeed
from memoranda.home import config
from memoranda.support.home import Home
from tests.cli.terminal import Terminal
from tests.conftest import OWN_TOOLS
from tests.external.diary import DIARY, diary_home, told, told_in_time
from tests.external.plugins import add_plugin
from tests.timing import GIVE_UP, HANG, wait_until


def _set(home: Path, **values: object) -> None:
    for key, value in values.items():
        config.set_value(Home.at(home), f"provider.{key}", str(value))


def _begin(home: Path) -> tuple[float, str]:
    """How long a session takes to begin, and its prompt."""
    with memoranda.open(home) as memory:
        began = time.monotonic()
        session = memory.session()
        took, prompt = time.monotonic() - began, session.prompt
        session.external.close()
        return took, prompt


@pytest.mark.slow
def test_a_provider_that_hangs_at_its_start_is_waited_for_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Within the time that is configured; then hardly at all, in this process or another, until it is back."""
    home = diary_home(tmp_path, start="time.sleep(200)")
    _set(home, begin_seconds=1)
    with caplog.at_level(logging.WARNING):
        took, prompt = _begin(home)
    assert 0.9 < took < GIVE_UP
    assert "diary" not in prompt.lower()
    assert "was not ready within 1 s" in caplog.text
    _set(home, begin_seconds=HANG)
    assert _begin(home)[0] < GIVE_UP
    assert read_status(home, "diary").late_start
    # As in another process, which has only the file to go by.
    attach._late.clear()
    assert _begin(home)[0] < GIVE_UP

    source = home / "plugins" / "diary" / "__init__.py"
    source.write_text(source.read_text().replace("time.sleep(200)", "time.sleep(0.4)"))
    wait_until(lambda: "There is a diary." in _begin(home)[1], GIVE_UP)
    assert not read_status(home, "diary").late_start


@pytest.mark.slow
def test_a_session_waits_until_a_local_provider_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was late before: a busy machine must not begin a session without its tools and its prompt."""
    home = Home.at(tmp_path)
    config.set_value(home, "memory.provider", "holographic")
    _set(tmp_path, begin_seconds=0.1)
    start = HolographicProvider.initialize

    def start_late(self: HolographicProvider, session_id: str, **facts: Any) -> None:
        time.sleep(0.7)
        start(self, session_id, **facts)

    monkeypatch.setattr(HolographicProvider, "initialize", start_late)
    for _ in range(2):
        with memoranda.open(tmp_path) as memory:
            session = memory.session()
            assert "fact_store" in [tool.name for tool in session.tools]
            assert "fact_store" in session.prompt
            session.external.close()


def test_a_provider_that_is_late_joins_the_session_when_it_is_ready(tmp_path: Path) -> None:
    """The prompt stays as it is; tools, recall and deliveries come."""
    home = diary_home(tmp_path, start="time.sleep(0.8)")
    _set(home, begin_seconds=0.2)
    with memoranda.open(home) as memory, memory.session() as session:
        with session.turn("early") as turn:
            assert turn.messages == [{"role": "user", "content": "early"}]
            turn.done("yes")
        told_in_time(home, ["turn", "early", "yes"])
        assert [tool.name for tool in session.tools] == [*OWN_TOOLS, "diary_read"]
        assert "Otto" in session.turn("late").messages[-1]["content"]
        assert "diary" not in session.prompt.lower()
    assert told(home)[0] == ["turn", "early", "yes"]


@pytest.mark.slow
def test_a_turn_has_one_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what a provider does at its start and for the recall together."""
    granted: list[float] = []
    wait = PendingCall.wait

    def note_and_wait(call: PendingCall, seconds: float) -> CallResult | None:
        granted.append(seconds)
        return wait(call, seconds)

    source = DIARY.replace(
        "    def lines(self)",
        "    def on_turn_start(self, number, message, **facts):\n        time.sleep(200)\n\n    def lines(self)",
    )
    add_plugin(tmp_path, "diary", source.replace("BREAK_START", "pass").replace("BREAK_RECALL", "time.sleep(200)"))
    config.set_value(Home.at(tmp_path), "memory.provider", "diary")
    _set(tmp_path, recall_seconds=1)
    with memoranda.open(tmp_path) as memory, memory.session() as session:
        monkeypatch.setattr(PendingCall, "wait", note_and_wait)
        session.turn("hello")
        # What each call was granted, and not how long the turn took, which depends on the machine.
        assert granted[0] == 0.5 and sum(granted[1:]) <= 0.5


def test_a_provider_is_asked_for_its_tools_once(tmp_path: Path) -> None:
    """However often tools are listed and called."""
    source = DIARY.replace('        return [{"name"', '        self.note("asked")\n        return [{"name"')
    add_plugin(tmp_path, "diary", source.replace("BREAK_START", "pass").replace("BREAK_RECALL", "pass"))
    config.set_value(Home.at(tmp_path), "memory.provider", "diary")
    with memoranda.open(tmp_path) as memory, memory.session() as session:
        for _ in range(3):
            assert len(session.tools) == 6
            assert session.call("diary_read", {})["success"]
            assert session.call("memory", {"action": "remove", "old_text": "x"})["success"] is False
    assert told(tmp_path).count(["asked"]) == 1


def test_known_credentials_are_in_no_log_and_no_status(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a provider puts into its errors, and wherever it fails."""
    secret = "correct-horse-battery"
    home = diary_home(tmp_path, start=f"raise RuntimeError('refused for {secret}')")
    config.set_secret(Home.at(home), "DIARY_KEY", secret)
    with caplog.at_level(logging.DEBUG), memoranda.open(home) as memory:
        session = memory.session()
        session.turn("q").done("a")
        session.end()
    assert "refused for [redacted:known_value]" in read_status(home, "diary").last_error
    assert secret not in caplog.text
    assert secret.encode() not in b"".join(path.read_bytes() for path in home.glob("home.db*"))


_KEYS = "self.note('key', os.environ.get('DIARY_KEY'), facts['secrets'])"


@pytest.mark.slow
def test_two_homes_in_one_process_do_not_get_each_others_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One after the other each has its own; at the same time the second is refused, and says why."""
    monkeypatch.delenv("DIARY_KEY", raising=False)
    homes = [diary_home(tmp_path / name, start=_KEYS) for name in "ab"]
    for home in homes:
        config.set_secret(Home.at(home), "DIARY_KEY", f"key of {home.name}")
        with memoranda.open(home) as memory, memory.session(), memory.session():
            pass
        key = f"key of {home.name}"
        assert [line for line in told(home) if line[0] == "key"] == [["key", key, {"DIARY_KEY": key}]] * 2
        assert "DIARY_KEY" not in os.environ
    with memoranda.open(homes[0]) as first, memoranda.open(homes[1]) as second, first.session():
        with second.session() as session:
            assert "diary" not in session.prompt.lower()
            wait_until(lambda: "DIARY_KEY has another value for" in caplog.text)
        assert "key of" not in caplog.text
        assert os.environ["DIARY_KEY"] == "key of a"
    assert "DIARY_KEY" not in os.environ


def test_two_homes_in_one_process_have_homes_of_their_own(tmp_path: Path) -> None:
    """What a plugin asks Hermes's module for is the home that contains it, whichever was loaded last."""
    asking = "from hermes_constants import get_hermes_home; self.note('home', str(get_hermes_home()))"
    source = DIARY.replace("BREAK_START", "pass").replace("BREAK_RECALL", asking)
    homes = [tmp_path / name for name in "ab"]
    for home in homes:
        add_plugin(home, "diary", source)
        config.set_value(Home.at(home), "memory.provider", "diary")
    with memoranda.open(homes[0]) as first, memoranda.open(homes[1]) as second:
        sessions = [first.session(), second.session()]
        for session in sessions:
            session.turn("where?")
        for home in homes:
            assert ["home", str(home)] in told_in_time(home, ["home", str(home)])
        for session in sessions:
            session.end()


def _messages(home: Path, questions: int = 4, **settings: Any) -> tuple[list[str], list[str]]:
    """The names of the tools in a session, and what became of its user messages."""
    _set(home, **settings)
    with memoranda.open(home) as memory, memory.session() as session:
        asked = [session.turn(f"q{number}").messages[-1]["content"] for number in range(questions)]
        return [tool.name for tool in session.tools], asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "tools", "recalls"), [("hybrid", True, True), ("context", False, True), ("tools", True, False)]
)
def test_the_mode_says_what_a_session_gets(tmp_path: Path, mode: str, tools: bool, recalls: bool) -> None:
    """Recall in each turn, tools, or both; what happens is delivered in any case."""
    home = diary_home(tmp_path)
    names, asked = _messages(home, 1, mode=mode)
    assert ("diary_read" in names) is tools
    assert ("Otto" in asked[0]) is recalls
    with memoranda.open(home) as memory, memory.session() as session:
        answer = session.call("diary_read", {})
        assert answer["success"] is tools
        with session.turn("q") as turn:
            turn.done("a")
    assert ["turn", "q", "a"] in told(home)


@pytest.mark.slow
def test_a_session_keeps_to_its_budgets(tmp_path: Path) -> None:
    """So many characters, every so many turns; a provider may want less, and gets no more."""
    home = diary_home(tmp_path, recall="return 'word ' * 1000")
    _, asked = _messages(home, recall_chars=200, every_n_turns=2)
    assert ["<memory-context>" in each for each in asked] == [True, False, True, False]
    # The label of the source counts, too.
    assert 100 < asked[0].count("word") * 5 <= 200
    _, asked = _messages(home, recall_chars=0)
    assert asked == ["q0", "q1", "q2", "q3"]
    source = home / "plugins" / "diary" / "__init__.py"
    narrow = "    def limits(self):\n        return {'recall_chars': 50, 'every_n_turns': 3}\n\n    def lines(self)"
    source.write_text(source.read_text().replace("    def lines(self)", narrow))
    _, asked = _messages(home, recall_chars=200, every_n_turns=2)
    assert ["<memory-context>" in each for each in asked] == [True, False, False, True]
    assert asked[0].count("word") * 5 <= 50


@pytest.mark.slow
def test_a_platform_has_the_toolsets_that_are_configured_for_it(tmp_path: Path) -> None:
    """Provider tools go with the memory tool; a platform that is not named has everything."""
    home = diary_home(tmp_path)
    file = home / "config.yaml"
    file.write_text(file.read_text() + "tools:\n  telegram: [session_search]\n  cron: []\n  cli: [memory]\n")
    expected = {
        "telegram": ["session_search"],
        "cron": [],
        "cli": ["memory", "diary_read"],
        "library": [*OWN_TOOLS, "diary_read"],
    }
    with memoranda.open(home) as memory:
        for platform, names in expected.items():
            with memory.session(source=platform) as session:
                assert [tool.name for tool in session.tools] == names
                assert session.call("memory", {"action": "add", "content": platform})["success"] is ("memory" in names)


@pytest.mark.slow
def test_what_a_person_changes_is_mirrored(tmp_path: Path) -> None:
    """By any command, and when a proposal is approved; the provider receives it at its next start."""
    home = diary_home(tmp_path)
    terminal = Terminal(home)
    terminal.ok("memory", "add", "Likes tea.")
    terminal.ok("memory", "replace", "tea", "Likes coffee.")
    terminal.ok("memory", "undo")
    terminal.ok("memory", "remove", "tea")
    terminal.ok("memory", "add", "Lives here.", "--target", "user")
    terminal.ok("memory", "reset", "user", "--yes")
    config.set_value(Home.at(home), "memory.write_approval", "propose")
    with memoranda.open(home) as memory, memory.session() as session:
        assert session.call("memory", {"action": "add", "content": "Proposed."})["staged"]
    terminal.ok("memory", "approve", "--all")
    last = ["write", "add", "memory", "Proposed.", None]
    with memoranda.open(home) as memory, memory.session():
        lines = told_in_time(home, last)
    assert [line for line in lines if line[0] == "write"] == [
        ["write", "add", "memory", "Likes tea.", None],
        ["write", "replace", "memory", "Likes coffee.", "Likes tea."],
        ["write", "replace", "memory", "Likes tea.", "Likes coffee."],
        ["write", "remove", "memory", "", "Likes tea."],
        ["write", "add", "user", "Lives here.", None],
        ["write", "remove", "user", "", "Lives here."],
        last,
    ]


@pytest.mark.slow
def test_a_delivery_that_is_still_read_when_its_home_closes_is_made_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread ends without an error, because the record that it reads is closed on purpose."""
    home = diary_home(tmp_path)
    _set(home, shutdown_seconds=0.01)
    reading, closed, ended = threading.Event(), threading.Event(), threading.Event()
    read, release = RecordFeed.content, Delivery._release_after_stop

    def read_after_the_close(feed: RecordFeed, user: str, found: Found) -> JobContent | None:
        reading.set()
        assert closed.wait(GIVE_UP)
        return read(feed, user, found)

    def release_at_the_end(delivery: Delivery) -> None:
        release(delivery)
        ended.set()

    with monkeypatch.context() as patch:
        patch.setattr(RecordFeed, "content", read_after_the_close)
        patch.setattr(Delivery, "_release_after_stop", release_at_the_end)
        with memoranda.open(home) as memory, memory.session() as session:
            with session.turn("Where do herons sleep?") as turn:
                turn.done("In trees.")
            assert reading.wait(GIVE_UP)
        closed.set()
        assert ended.wait(GIVE_UP)
    with memoranda.open(home) as memory, memory.session():
        wait_until(lambda: "In trees." in str(told(home)))
