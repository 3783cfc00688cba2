"""The outbox keeps what it was given until it was delivered, in order, and in one pair of hands at a time."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.external.outbox.jobs import Backlog, Job, NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import TurnMarks
from memoranda.external.settings import ProviderSettings
from memoranda.memory.record.store import open_store
from memoranda.support.home import Home
from tests.conftest import mode

SETTINGS = ProviderSettings(lease_seconds=30, first_retry_seconds=1, max_retry_seconds=600, max_attempts=3)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(tmp_path: Path, clock: Clock, server_url: str) -> Iterator[Outbox]:
    with closing(Outbox(tmp_path / "home", SETTINGS, clock=clock, server_url=server_url)) as outbox:
        yield outbox


@pytest.fixture
def file_outbox(tmp_path: Path, clock: Clock) -> Outbox:
    return Outbox(tmp_path / "home", SETTINGS, clock=clock)


def _put(outbox: Outbox, *texts: str, session_id: str = "s", **options: Any) -> None:
    for text in texts:
        outbox.put("p", "turn", session_id, {"text": text}, {}, **options)


def _claim(outbox: Outbox, scope: str = "") -> Job:
    job = outbox.claim("p", scope)
    assert job is not None
    return job


def _rest(outbox: Outbox) -> list[str]:
    """Deliver everything that can be; what it was."""
    texts = []
    while (job := outbox.claim("p")) is not None:
        texts.append(job.args["text"])
        outbox.delivered(job)
    return texts


def test_jobs_come_out_as_they_went_in(outbox: Outbox) -> None:
    """In order, with arguments in their order, facts and key; then there is nothing left."""
    outbox.put("p", "memory_write", "s", {"z": "é\ud800\x00", "a": [1, None]}, {"metadata": {"k": 1.5}}, key="key 1")
    _put(outbox, "second")
    job = _claim(outbox)
    assert (job.key, job.kind, job.session_id) == ("key 1", "memory_write", "s")
    assert list(job.args.items()) == [("z", "é\ud800\x00"), ("a", [1, None])]
    assert (job.facts, job.attempts, job.orphan) == ({"metadata": {"k": 1.5}}, 0, False)
    assert _claim(outbox) == job
    outbox.delivered(job)
    assert _rest(outbox) == ["second"]
    assert not outbox.backlog()
    assert outbox.seconds_until_due("p") is None


def test_the_file_is_made_when_it_is_needed_and_is_private(file_outbox: Outbox) -> None:
    """Looking makes nothing."""
    assert (file_outbox.claim("p"), file_outbox.seconds_until_due("p"), file_outbox.backlog()) == (
        None,
        None,
        Backlog(),
    )
    file_outbox.renew()
    file_outbox.release()
    assert file_outbox.retry_failed("p") == 0
    assert not file_outbox.path.exists()
    _put(file_outbox, "x")
    assert mode(file_outbox.path) == 0o600


def test_a_key_is_queued_once(outbox: Outbox) -> None:
    """The first one counts."""
    _put(outbox, "first", "second", key="same")
    assert _rest(outbox) == ["first"]


def test_a_failing_job_delays_its_own_session_only(outbox: Outbox, clock: Clock) -> None:
    """The others continue, and its own continues in order once it gets through."""
    _put(outbox, "a1", "a2", session_id="a")
    _put(outbox, "b1", "b2", session_id="b")
    assert outbox.failed(_claim(outbox), "down") is False
    assert _rest(outbox) == ["b1", "b2"]
    pause = outbox.seconds_until_due("p")
    assert pause is not None
    assert 0.5 <= pause <= 1
    clock.now += 1
    assert _rest(outbox) == ["a1", "a2"]


def test_the_pause_doubles_up_to_a_limit_with_jitter(outbox: Outbox, clock: Clock) -> None:
    """From one second to ten minutes, never more and never less than half."""
    _put(outbox, "x")
    pauses = []
    for _ in range(14):
        outbox.failed(_claim(outbox), "down")
        pause = outbox.seconds_until_due("p")
        assert pause is not None
        pauses.append(pause)
        clock.now += pause
        if clock.now - 1_000_000 > 900:
            break
    for number, pause in enumerate(pauses):
        assert min(2.0**number, 600) / 2 <= pause <= min(2.0**number, 600)
    assert len(set(pauses)) == len(pauses)
    assert max(outbox._pause(number) for number in (20, 2_000)) <= 600


def test_a_permanent_failure_is_parked_at_once(outbox: Outbox) -> None:
    """Repeating it would not help; its session continues without it."""
    _put(outbox, "refused", "after it")
    assert outbox.failed(_claim(outbox), "401: the key was refused", permanent=True) is True
    assert outbox.backlog("p").parked == 1
    assert outbox.backlog("p").last_error == "401: the key was refused"
    assert _rest(outbox) == ["after it"]


def test_a_service_that_asks_to_wait_gets_nothing_until_then(
    tmp_path: Path, server_url: str, outbox: Outbox, clock: Clock
) -> None:
    """No job of any session, from any process; another provider is not concerned."""
    _put(outbox, "a1", session_id="a")
    _put(outbox, "b1", session_id="b")
    outbox.put("other", "turn", "s", {"text": "x"}, {})
    assert outbox.failed(_claim(outbox), "429", retry_after=3_000.0) is False
    with closing(Outbox(tmp_path / "home", SETTINGS, clock=clock, server_url=server_url)) as another:
        assert another.claim("p") is None
        assert outbox.seconds_until_due("p") == another.seconds_until_due("p") == 3_000.0
    assert outbox.claim("other") is not None
    clock.now += 2_999
    outbox.renew()
    assert outbox.claim("p") is None
    clock.now += 1
    assert _rest(outbox) == ["a1", "b1"]


def test_waiting_for_a_service_parks_nothing(outbox: Outbox, clock: Clock) -> None:
    """However often it asks; that jobs of other sessions got through does not count against the one that waits."""
    _put(outbox, "a1", session_id="a")
    outbox.failed(_claim(outbox), "429", retry_after=1.0)
    for number in range(5):
        clock.now += 60
        _put(outbox, f"b{number}", session_id="b")
        waiting, other = _claim(outbox), outbox.put("p", "turn", "c", {}, {})
        outbox.delivered(Job(0, "p", other, "turn", "c", {}, {}, 0, orphan=False))
        assert outbox.failed(waiting, "429", retry_after=1.0) is False
    assert outbox.backlog("p").parked == 0


def test_a_wait_ends_when_the_clock_is_set_back_or_parked_jobs_are_retried(outbox: Outbox, clock: Clock) -> None:
    """A date from the future was never asked for, and a person who retries means now."""
    _put(outbox, "x")
    outbox.failed(_claim(outbox), "429", retry_after=3_000.0)
    clock.now -= 100_000
    assert outbox.seconds_until_due("p") is not None
    assert _claim(outbox).args["text"] == "x"
    clock.now += 100_000
    assert outbox.claim("p") is None
    outbox.retry_failed("p")
    clock.now += 2
    assert _claim(outbox).args["text"] == "x"


def test_poison_is_parked_and_stays_to_be_seen(outbox: Outbox, clock: Clock) -> None:
    """After so many tries, while others got through; its session continues, and it can be retried."""
    _put(outbox, "poison", "after it")
    _put(outbox, "fine", session_id="other")
    parked = []
    for _ in range(3):
        job = _claim(outbox)
        assert job.args["text"] == "poison"
        parked.append(outbox.failed(job, "cannot be read"))
        clock.now += 0.1
        assert _rest(outbox) in (["fine"], [], ["after it"])
        clock.now += 10
    assert parked == [False, False, True]
    assert outbox.backlog("p") == Backlog(parked=1, oldest=1_000_000.0, last_error="cannot be read")
    assert outbox.retry_failed("another") == 0
    assert outbox.retry_failed("p") == 1
    assert _rest(outbox) == ["poison"]


def test_nothing_is_parked_while_the_other_side_is_down(outbox: Outbox, clock: Clock) -> None:
    """Failing says nothing about a job while everything fails, however long that is."""
    _put(outbox, "a", session_id="a")
    _put(outbox, "b", session_id="b")
    for number in range(8):
        assert outbox.failed(_claim(outbox), "down") is False
        assert outbox.failed(_claim(outbox), "down") is False
        clock.now += 2**number
    assert outbox.backlog() == Backlog(waiting=2, failing=2, oldest=1_000_000.0, last_error="down")
    clock.now = 1_002_000
    assert outbox.failed(_claim(outbox), "down") is False


def test_parked_jobs_are_retried_by_themselves_and_in_order(outbox: Outbox, clock: Clock) -> None:
    """After pauses that grow to a day; all of a session together, before what it queued later."""
    _put(outbox, "first", "second")
    pauses = []
    for _ in range(12):
        for text in ("first", "second"):
            job = _claim(outbox)
            assert job.args["text"] == text
            assert outbox.failed(job, "422", permanent=True) is True
        pause = outbox.resume_parked("p")
        assert pause is not None
        pauses.append(pause)
        clock.now += pause - 0.001
        assert outbox.resume_parked("p") is not None and outbox.claim("p") is None
        clock.now += 0.002
        assert outbox.resume_parked("p") == 0.0
    for number, pause in enumerate(pauses):
        assert min(600 * 2.0**number, 86_400) / 2 <= pause <= min(600 * 2.0**number, 86_400)
    _put(outbox, "third")
    assert _rest(outbox) == ["first", "second", "third"]
    assert outbox.resume_parked("p") is None


def test_what_one_process_holds_no_other_gets(outbox: Outbox, tmp_path: Path, server_url: str, clock: Clock) -> None:
    """Until it lets go, or stops renewing it; then it is delivered again with the same key."""
    other = Outbox(tmp_path / "home", SETTINGS, clock=clock, server_url=server_url)
    _put(outbox, "x", key="k")
    assert other.claim("p") is None
    assert other.seconds_until_due("p") == 30
    clock.now += 25
    outbox.renew()
    clock.now += 25
    assert other.claim("p") is None
    clock.now += 6
    job = _claim(other)
    assert (job.key, job.orphan) == ("k", True)
    assert outbox.claim("p") is None
    other.release(job)
    assert outbox.claim("p") is None
    other.release()
    assert _claim(outbox).orphan


def test_a_claim_that_was_lost_changes_nothing_by_failing(
    outbox: Outbox, tmp_path: Path, server_url: str, clock: Clock
) -> None:
    """And ends the job for everybody by succeeding."""
    other = Outbox(tmp_path / "home", SETTINGS, clock=clock, server_url=server_url)
    _put(outbox, "x")
    mine = _claim(outbox)
    clock.now += 31
    theirs = _claim(other)
    outbox.failed(mine, "too late")
    assert outbox.backlog().last_error == ""
    outbox.delivered(mine)
    other.failed(theirs, "down")
    other.delivered(theirs)
    assert not outbox.backlog()


def test_a_clock_that_is_set_back_stops_nothing_for_long(
    outbox: Outbox, tmp_path: Path, server_url: str, clock: Clock
) -> None:
    """Neither a claim nor a pause lasts longer than it can have been meant to."""
    _put(outbox, "held", session_id="a")
    _put(outbox, "paused", session_id="b")
    other = Outbox(tmp_path / "home", SETTINGS, clock=clock, server_url=server_url)
    clock.now -= 1_000_000
    assert _rest(other) == ["held", "paused"]
    clock.now = 2_000_000
    _put(other, "failed")
    other.failed(_claim(other), "down")
    clock.now = 1_000_000
    assert _rest(other) == ["failed"]


def test_no_provider_receives_what_another_user_said(outbox: Outbox) -> None:
    """Nor is a provider told what was for another one."""
    _put(outbox, "ana", scope="ana")
    _put(outbox, "ben", scope="ben")
    outbox.put("q", "turn", "s", {"text": "for q"}, {})
    assert outbox.claim("p") is None
    assert _claim(outbox, "ben").args == {"text": "ben"}
    assert (outbox.backlog("p").waiting, outbox.backlog("p", "ana").waiting, outbox.backlog().waiting) == (2, 1, 3)


def test_what_cannot_be_written_down_is_refused(outbox: Outbox) -> None:
    """A value that contains itself; any other object is written as text."""
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(StorageError, match="cannot be written as JSON"):
        outbox.put("p", "turn", "s", {"text": itself}, {})
    outbox.put("p", "turn", "s", {"text": Path("a") / "b", ("key",): 1}, {})  # type: ignore[dict-item]
    assert _rest(outbox) == ["a/b"]


def test_a_file_that_is_not_ours_is_not_changed(file_outbox: Outbox) -> None:
    """Damaged, of another program, or newer than we are; what is put is recorded all the same."""
    file_outbox.path.parent.mkdir()
    file_outbox.path.write_bytes(b"no database" * 100)
    _put(file_outbox, "x")
    with pytest.raises(CorruptStoreError):
        file_outbox.claim("p")
    assert file_outbox.path.read_bytes() == b"no database" * 100
    file_outbox.path.unlink()
    with closing(sqlite3.connect(file_outbox.path)) as connection:
        connection.execute("CREATE TABLE jobs (x)")
    with pytest.raises(CorruptStoreError):
        file_outbox.claim("p")
    file_outbox.path.unlink()
    file_outbox.catch_up("p")
    assert _rest(file_outbox) == ["x"]
    file_outbox.close()
    with closing(sqlite3.connect(file_outbox.path)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(NewerStoreError):
        Outbox(file_outbox.path.parent).claim("p")


def test_a_closed_outbox_stays_closed(file_outbox: Outbox) -> None:
    """And what was in it is there for the next one."""
    _put(file_outbox, "x")
    file_outbox.close()
    with pytest.raises(StorageError, match="closed"):
        _put(file_outbox, "y")
    assert Outbox(file_outbox.path.parent).backlog().waiting == 1


def test_what_is_found_behind_a_place_is_queued_once(tmp_path: Path, server_url: str) -> None:
    """The place moves in the same commit, so two who look, or one who looks twice, queue nothing twice."""
    first, second = Outbox(tmp_path, server_url=server_url), Outbox(tmp_path, server_url=server_url)
    for session in ("s11", "s12"):
        first.record("p", "", NewJob("turn", session, {}, {}, f"key {session}"), leased=session == "s11")
    assert first.catch_up("p") == 2
    assert (second.catch_up("p"), first.catch_up("p"), second.catch_up("p", "ana"), second.catch_up("q")) == (0,) * 4
    # The session's own is held by the one who recorded it, the other is free.
    claimed = second.claim("p")
    assert claimed is not None
    assert claimed.session_id == "s12"
    assert second.backlog().waiting == 2
    for outbox in (first, second):
        outbox.close()


def test_a_look_that_fails_moves_nothing(tmp_path: Path, server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the place nor the queue."""
    with closing(Outbox(tmp_path, server_url=server_url)) as outbox:
        outbox.record("p", "", NewJob("turn", "s", {"text": "x"}, {}, "k"))
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            patch.setattr(outbox, "_until", lambda: 1 // 0)
            outbox.catch_up("p")
        assert outbox.claim("p") is None
        assert outbox.catch_up("p") == 1
        assert _rest(outbox) == ["x"]


def test_two_providers_have_jobs_with_the_same_key(tmp_path: Path, server_url: str) -> None:
    """Each gets its own; the same key for the same provider is one job."""
    outbox = Outbox(tmp_path, server_url=server_url)
    for provider in ("a", "b", "a"):
        assert outbox.put(provider, "turn", "s", {"text": "q"}, {}, key="turn:s:1") == "turn:s:1"
    jobs = [outbox.claim("a"), outbox.claim("b")]
    assert [(job.provider, job.key) for job in jobs if job] == [("a", "turn:s:1"), ("b", "turn:s:1")]
    for job in filter(None, jobs):
        outbox.delivered(job)
    assert not outbox.backlog()
    outbox.close()


@pytest.mark.slow
def test_a_provider_that_was_away_for_a_thousand_turns_gets_each_once_and_in_order(tmp_path: Path) -> None:
    """Read from the record, in two conversations at the same time, and by a second process after a part of them."""
    home = Home(tmp_path / "home")
    home.root.mkdir()
    with closing(open_store(home.state_db)) as store:
        marks = TurnMarks(lambda: store, ("p",))
        for session_id in ("first", "second"):
            store.sessions.create_session(session_id, "cli")
        for number in range(1_000):
            session_id = "first" if number % 3 else "second"
            question = {"role": "user", "content": f"question {number}", **marks.mark(None, done=False)}
            (first,) = store.messages.append_messages(session_id, [question])
            answer = {"role": "assistant", "content": f"answer {number}", **marks.mark(first, done=True)}
            store.messages.append_messages(session_id, [answer])
    received: list[tuple[str, str, str]] = []
    for most in (400, 1_000):
        with closing(Outbox(home.root, SETTINGS)) as outbox:
            outbox.catch_up("p")
            while len(received) < most and (job := outbox.claim("p")) is not None:
                received.append((job.session_id, job.args["user_content"], job.args["assistant_content"]))
                outbox.delivered(job)
    assert len(received) == len(set(received)) == 1_000
    for session_id, rest in (("first", (1, 2)), ("second", (0,))):
        wanted = [number for number in range(1_000) if number % 3 in rest]
        assert [pair for name, *pair in received if name == session_id] == [
            [f"question {number}", f"answer {number}"] for number in wanted
        ]
    with closing(Outbox(home.root, SETTINGS)) as outbox:
        assert not outbox.backlog("p")
