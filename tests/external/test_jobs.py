"""A job that changed on the disk is noticed by its checksum, and never sent."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.external.checks import check_outbox, check_server_outbox
from memoranda.external.outbox.jobs import JobIdentity, NewJob, is_intact, open_payload, seal_payload
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.queued_passages import QueuedPassages
from memoranda.external.outbox.schema import outbox_database
from memoranda.support.text_matcher import TextMatcher
from tests.cases import cases

JOB = JobIdentity("diary", "", "diary:turn:s:1", "turn", "s", 1_700_000_000.25)
ARGS = {"user_content": "The deploy key is in the vault.", "assistant_content": "Noted: grüße, 数据 \ud800."}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_OBJECT = st.dictionaries(st.text(max_size=5), _JSON, max_size=3)


def _fill(home: Path, count: int = 2) -> None:
    with closing(Outbox(home)) as outbox:
        for number in range(count):
            outbox.put("p", "turn", f"s{number}", ARGS, {"timestamp": 5.5}, key=f"k{number}")
        outbox.release()


def _change(home: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(home / "outbox.db")) as connection, connection:
        connection.execute(statement, values)


def _payloads(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "outbox.db")) as connection:
        return [payload for (payload,) in connection.execute("SELECT payload FROM jobs ORDER BY id")]


def _problems(home: Path) -> list[str]:
    return [issue.problem for issue in check_outbox(home, ("p",)) if issue.severity != "note"]


@pytest.mark.slow
@given(
    args=st.dictionaries(st.text(max_size=5), _JSON, max_size=3), facts=st.dictionaries(st.text(), _JSON, max_size=2)
)
def test_a_payload_is_read_as_it_was_written(args: dict[str, Any], facts: dict[str, Any]) -> None:
    """Whatever it contains."""
    payload = seal_payload(JOB, args, facts)
    assert json.dumps(open_payload(JOB, payload)) == json.dumps([args, facts])


@given(data=st.data())
def test_every_flipped_bit_of_a_payload_is_noticed(data: st.DataObject) -> None:
    """At whatever place, the checksum itself included."""
    stored = bytearray(seal_payload(JOB, ARGS, {"session_id": "s", "n": [1, 2.5, None]}).encode())
    place = data.draw(st.integers(0, len(stored) * 8 - 1))
    stored[place // 8] ^= 1 << place % 8
    assert not is_intact(JOB, stored.decode(errors="replace"))


@given(data=st.data())
def test_every_other_letter_in_a_payload_is_noticed(data: st.DataObject) -> None:
    """Also one that leaves valid JSON."""
    payload = seal_payload(JOB, ARGS, {"session_id": "s"})
    place = data.draw(st.integers(0, len(payload) - 1))
    letter = data.draw(st.characters(exclude_characters=payload[place], exclude_categories=["Cs"]))
    assert not is_intact(JOB, payload[:place] + letter + payload[place + 1 :])


@cases("field", JobIdentity._fields)
def test_a_change_of_the_columns_that_say_whose_job_it_is_is_noticed(field: str) -> None:
    """A job must not reach another provider, user or session."""
    payload = seal_payload(JOB, ARGS, {})
    other: Any = 5.0 if field == "created" else "session_end" if field == "kind" else "other"
    assert not is_intact(JOB._replace(**{field: other}), payload)


def test_a_job_without_a_checksum_is_damaged() -> None:
    """Also if the damage is in the name of the checksum."""
    assert not is_intact(JOB, json.dumps({"args": ARGS, "facts": {}}))
    assert not is_intact(JOB, json.dumps({"chec+sum": "00000000", "args": ARGS, "facts": {}}))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_doctor_reports_every_changed_letter(tmp_path: Path, data: st.DataObject) -> None:
    """In the database of a home, with the number of the job."""
    if not (tmp_path / "outbox.db").exists():
        _fill(tmp_path)
    intact = _payloads(tmp_path)[1]
    place = data.draw(st.integers(0, len(intact) - 1))
    letter = data.draw(st.sampled_from(sorted(set('aZ5 "\\{}é') - {intact[place]})))
    _change(tmp_path, "UPDATE jobs SET payload = ? WHERE id = 2", intact[:place] + letter + intact[place + 1 :])
    (problem,) = _problems(tmp_path)
    assert problem == "has 1 deliveries that cannot be read or have changed on the disk, and are not sent: 2"
    _change(tmp_path, "UPDATE jobs SET payload = ? WHERE id = 2", intact)
    assert _problems(tmp_path) == []


def test_a_flipped_bit_in_the_file_is_reported_and_the_job_moved_to_a_file(tmp_path: Path) -> None:
    """Also if the text is no longer UTF-8; --fix keeps what is left of it."""
    _fill(tmp_path)
    for bit in (0x04, 0x80):
        content = bytearray((tmp_path / "outbox.db").read_bytes())
        content[content.index(b"vault")] ^= bit
        (tmp_path / "outbox.db").write_bytes(content)
        (issue,) = check_outbox(tmp_path, ("p",))
        assert issue.severity == "error" and issue.repair is not None
        assert "1 are in outbox.unreadable-" in str(issue.repair())
        assert list(check_outbox(tmp_path, ("p",))) == []
    kept = "".join(path.read_text() for path in tmp_path.glob("outbox.unreadable-*"))
    assert "ault" in kept
    assert _payloads(tmp_path) == []


def test_a_damaged_job_is_parked_and_the_next_one_is_delivered(tmp_path: Path) -> None:
    """Nothing that differs from what was said reaches a provider, and nothing else waits for it."""
    _fill(tmp_path, 3)
    _change(tmp_path, "UPDATE jobs SET payload = replace(payload, 'vault', 'fault') WHERE id < 3")
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None and job.key == "k2"
        backlog = outbox.backlog("p")
        assert (backlog.waiting, backlog.parked) == (1, 2)
        assert "changed on the disk" in backlog.last_error
        assert [listed.state for listed in outbox.list_jobs("", 10)] == ["parked", "parked", "waiting"]
    (problem,) = _problems(tmp_path)
    assert "has 2 deliveries" in problem


def test_an_unreadable_job_does_not_block_the_others(tmp_path: Path) -> None:
    """It is parked like one with a wrong checksum, and listed without texts."""
    _fill(tmp_path)
    _change(tmp_path, "UPDATE jobs SET payload = CAST(x'7b22ff' AS TEXT) WHERE id = 1")
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None and job.key == "k1"
        assert [bool(listed.texts) for listed in outbox.list_jobs("", 10)] == [False, True]


def test_forgetting_a_text_leaves_right_checksums(tmp_path: Path) -> None:
    """A job that was damaged before stays recognisable."""
    _fill(tmp_path)
    _change(tmp_path, "UPDATE jobs SET payload = replace(payload, 'Noted', 'Voted') WHERE id = 2")
    queue = QueuedPassages(tmp_path, "")
    queue.put_deletion("p", ["s9"])
    assert queue.forget(TextMatcher(["vault"])) == 2
    assert "vault" not in "".join(_payloads(tmp_path))
    (problem,) = _problems(tmp_path)
    assert problem.endswith("not sent: 2")


def test_a_part_of_the_checksum_is_not_taken_for_the_text_to_forget(tmp_path: Path) -> None:
    """The job stays as it is."""
    _fill(tmp_path, 1)
    (payload,) = _payloads(tmp_path)
    checksum = json.loads(payload)["checksum"]
    assert QueuedPassages(tmp_path, "").forget(TextMatcher([checksum])) == 0
    assert _payloads(tmp_path) == [payload]


def test_a_spooled_job_that_changed_is_reported(tmp_path: Path) -> None:
    """Before it is in the queue, and after; nothing is sent."""
    with closing(Outbox(tmp_path)) as outbox:
        outbox.spool("p", "", NewJob("turn", "s", ARGS, {}), leased=False)
        assert _problems(tmp_path) == []
        (file,) = (tmp_path / "outbox.spool").glob("*.json")
        file.write_text(file.read_text().replace("vault", "fault"))
        assert _problems(tmp_path) == ["has changed on the disk, so its job is not sent"]
        outbox.load_spooled("p")
        assert outbox.claim("p") is None
    (problem,) = _problems(tmp_path)
    assert "have changed on the disk" in problem


def test_jobs_of_a_server_have_checksums_too(tmp_path: Path, postgres_url: str) -> None:
    """What the server has is checked in the same way."""
    setting = tmp_path / "config.yaml"
    with closing(Outbox(tmp_path, server_url=postgres_url)) as outbox:
        outbox.put("p", "turn", "s\0\ud800", ARGS, {}, key="k0")
        assert list(check_server_outbox(tmp_path, setting, postgres_url, ("p",))) == []
        with closing(outbox_database(tmp_path, postgres_url)) as database, database.open().writing() as connection:
            connection.execute("UPDATE jobs SET payload = replace(payload, 'vault', 'fault')")
        (issue,) = check_server_outbox(tmp_path, setting, postgres_url, ("p",))
        assert "1 deliveries that cannot be read or have changed on the disk" in issue.problem
        assert outbox.claim("p") is None
