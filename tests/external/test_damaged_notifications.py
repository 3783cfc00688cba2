"""A notification that changed on the disk is noticed by its checksum, and never sent; the next one is."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.external.checks import check_notifications
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.queued_passages import QueuedPassages
from memoranda.memory.record.notifications import NewNotification
from memoranda.memory.record.record import open_record
from memoranda.memory.record.store import open_store
from memoranda.support.text_matcher import TextMatcher

pytestmark = pytest.mark.slow

ARGS = {"user_content": "The deploy key is in the vault.", "assistant_content": "Noted: grüße, 数据 \ud800."}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _fill(home: Path, count: int = 2) -> None:
    with closing(Outbox(home)) as outbox:
        for number in range(count):
            outbox.put("p", "turn", f"s{number}", ARGS, {"timestamp": 5.5}, key=f"k{number}", leased=False)


def _change(home: Path, statement: str, *values: object, file: str = "state.db") -> None:
    with closing(sqlite3.connect(home / file)) as connection, connection:
        connection.execute(statement, values)


def _payloads(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "state.db")) as connection:
        return [payload for (payload,) in connection.execute("SELECT payload FROM notifications ORDER BY id")]


def _problems(home: Path) -> list[str]:
    return [issue.problem for issue in check_notifications(home) if issue.severity != "note"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=st.dictionaries(st.text(max_size=5), _JSON, max_size=3))
def test_a_payload_is_read_as_it_was_written(tmp_path: Path, payload: dict[str, Any]) -> None:
    """Whatever it contains."""
    with open_store(tmp_path / "state.db") as store:
        new = NewNotification("p", "", "turn", "s", "k", payload, "", 1.0)
        store.feed.notifications.add(new)
        (row,) = store.feed.notifications.select("p", "")
        assert row.content() == payload
        store.feed.notifications.remove([row.id])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_doctor_reports_every_changed_letter(tmp_path: Path, data: st.DataObject) -> None:
    """Also one that leaves valid JSON, with the number of the notification."""
    if not (tmp_path / "state.db").exists():
        _fill(tmp_path)
    intact = _payloads(tmp_path)[1]
    place = data.draw(st.integers(0, len(intact) - 1))
    letter = data.draw(st.sampled_from(sorted(set('aZ5 "\\{}é') - {intact[place]})))
    changed = intact[:place] + letter + intact[place + 1 :]
    _change(tmp_path, "UPDATE notifications SET payload = ? WHERE id = 2", changed)
    (problem,) = _problems(tmp_path)
    assert "has 1 notifications for external memories that cannot be read or have changed" in problem
    assert problem.endswith("not sent: 2")
    _change(tmp_path, "UPDATE notifications SET payload = ? WHERE id = 2", intact)
    assert _problems(tmp_path) == []


@pytest.mark.parametrize(
    "change", ["provider = 'q'", "user_id = 'eve'", "kind = 'session_end'", "session_id = 'other'", "key = 'other'"]
)
def test_a_change_of_the_columns_that_say_whose_it_is_is_noticed(tmp_path: Path, change: str) -> None:
    """A notification must not reach another provider, user or session, from the record or from the outbox."""
    home = tmp_path / change.partition(" ")[0]
    _fill(home, 1)
    _change(home, f"UPDATE notifications SET {change}")
    assert len(_problems(home)) >= 1
    with closing(Outbox(home)) as outbox:
        assert all(outbox.claim(provider, scope) is None for provider in "pq" for scope in ("", "eve"))


@pytest.mark.parametrize(
    "change", ["kind = 'session_end'", "session_id = 'other'", "key = 'other'", "notification = 2"]
)
def test_a_job_that_does_not_match_its_notification_is_read_again(tmp_path: Path, change: str) -> None:
    """It is not sent as it is, and the repair queues what was recorded."""
    home = tmp_path / change.partition(" ")[0]
    _fill(home)
    _change(home, f"UPDATE jobs SET {change} WHERE id = 1", file="home.db")
    with closing(Outbox(home)) as outbox:
        job = outbox.claim("p")
        assert job is not None and job.key == "k1"
        outbox.release()
    (issue,) = check_notifications(home)
    assert issue.repair is not None
    issue.repair()
    assert _problems(home) == []
    with closing(Outbox(home)) as outbox:
        outbox.catch_up("p")
        keys = []
        while (job := outbox.claim("p")) is not None:
            keys.append(job.key)
            outbox.delivered(job)
    assert sorted(keys) == ["k0", "k1"]


def test_a_flipped_bit_in_the_file_is_reported_and_the_notification_moved_to_a_file(tmp_path: Path) -> None:
    """Also if the text is no longer UTF-8; --fix keeps what is left of it."""
    _fill(tmp_path)
    for bit in (0x04, 0x80):
        content = bytearray((tmp_path / "state.db").read_bytes())
        content[content.index(b"vault")] ^= bit
        (tmp_path / "state.db").write_bytes(content)
        (issue,) = check_notifications(tmp_path)
        assert issue.severity == "error" and issue.repair is not None
        assert "1 are in outbox.unreadable-" in str(issue.repair())
        assert list(check_notifications(tmp_path)) == []
    kept = "".join(path.read_text() for path in tmp_path.glob("outbox.unreadable-*"))
    assert "ault" in kept
    assert _payloads(tmp_path) == []


def test_a_damaged_notification_is_parked_and_the_next_one_is_delivered(tmp_path: Path) -> None:
    """Nothing that differs from what was said reaches a provider, and nothing else waits for it."""
    _fill(tmp_path, 3)
    _change(tmp_path, "UPDATE notifications SET payload = replace(payload, 'vault', 'fault') WHERE id = 1")
    _change(tmp_path, "UPDATE notifications SET payload = CAST(x'7b22ff' AS TEXT) WHERE id = 2")
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None and job.key == "k2"
        backlog = outbox.backlog("p")
        assert (backlog.waiting, backlog.parked) == (1, 2)
        assert "changed on the disk" in backlog.last_error
        assert [(listed.state, bool(listed.texts)) for listed in outbox.list_jobs("", 10)] == [
            ("parked", False),
            ("parked", False),
            ("waiting", True),
        ]
    (problem,) = _problems(tmp_path)
    assert "has 2 notifications" in problem


def test_forgetting_a_text_leaves_right_checksums(tmp_path: Path) -> None:
    """A notification that was damaged before stays recognisable."""
    _fill(tmp_path)
    _change(tmp_path, "UPDATE notifications SET payload = replace(payload, 'Noted', 'Voted') WHERE id = 2")
    queue = QueuedPassages(tmp_path, "")
    queue.put_deletion("p", ["s9"])
    assert queue.forget(TextMatcher(["vault"])) == 2
    assert "vault" not in "".join(_payloads(tmp_path))
    (problem,) = _problems(tmp_path)
    assert problem.endswith("not sent: 2")


def test_a_deletion_comes_before_everything_else(tmp_path: Path) -> None:
    """What a person wants forgotten waits for nothing, and is known until it was carried out."""
    _fill(tmp_path, 1)
    queue = QueuedPassages(tmp_path, "")
    queue.put_deletion("p", ["s9", "s8"])
    assert (queue.queued_deletions("p"), queue.queued_deletions("q")) == ({"s8", "s9"}, set())
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None and (job.kind, job.args) == ("forget", {"session_ids": ["s8", "s9"]})
        outbox.release()
    queue.drop_deletions("p")
    assert queue.queued_deletions("p") == set()
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None and job.key == "k0"


def test_notifications_on_a_server_have_checksums_too(tmp_path: Path, postgres_url: str) -> None:
    """What the server has is checked in the same way."""
    setting = tmp_path / "config.yaml"
    with closing(Outbox(tmp_path, server_url=postgres_url)) as outbox:
        outbox.put("p", "turn", "s\0\ud800", ARGS, {}, key="k0")
        assert list(check_notifications(tmp_path, setting, postgres_url)) == []
        with closing(open_record(postgres_url)) as engine, engine.writing() as connection:
            connection.execute("UPDATE notifications SET payload = replace(payload, 'vault', 'fault')")
        (issue,) = check_notifications(tmp_path, setting, postgres_url)
        assert "1 notifications for external memories that cannot be read or have changed" in issue.problem
        assert outbox.claim("p") is None


def test_a_notification_is_readable_json(tmp_path: Path) -> None:
    """For a person who looks into the file that the doctor wrote."""
    _fill(tmp_path, 1)
    (payload,) = _payloads(tmp_path)
    assert json.loads(payload) == {"args": ARGS, "facts": {"timestamp": 5.5}}
