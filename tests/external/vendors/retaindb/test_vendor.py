"""What is special about RetainDB: jobs, tasks, projects per user, noise, and files."""

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.vendors.retaindb import client
from memoranda.external.vendors.retaindb.vendor import RetainDBProvider
from tests.external.vendors.retaindb.conftest import Start, settings_for
from tests.external.vendors.retaindb.double import LocalDouble, ServerDouble
from tests.external.vendors.vendor_service import read_recording

pytestmark = pytest.mark.slow

Double = Any


def turn(provider: RetainDBProvider, text: str, key: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


def call(provider: RetainDBProvider, tool: str, **args: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(provider.handle_tool_call(tool, args, session_id="s1"))
    return answer


def test_an_attempt_that_is_being_processed_is_found(server: ServerDouble, start: Start) -> None:
    """As a pending entry with its words."""
    provider = start(server)
    server.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    turn(provider, "My cat is called Minka.", "k1", attempt=2)
    assert len(server.jobs) == 1
    assert server.stored_texts() == ["My cat is called Minka."]


def test_a_turn_that_stays_queued_is_not_called_stored(
    server: ServerDouble, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox keeps it: the job may still fail. The next attempt waits for the same job, and adds nothing."""
    monkeypatch.setattr(client, "_JOB_SECONDS", 0.3)
    provider = start(server)
    server.stalled = True
    for attempt in (1, 2):
        with pytest.raises(TemporaryProviderError, match="still processing"):
            turn(provider, "My cat is called Minka.", "k1", attempt=attempt)
    server.stalled = False
    turn(provider, "My cat is called Minka.", "k1", attempt=3)
    assert len(server.jobs) == 1
    assert server.stored_texts() == ["My cat is called Minka."]


def test_an_attempt_that_was_processed_adds_no_memory(server: ServerDouble, start: Start) -> None:
    """The server shows no key of it, and recognizes what it has."""
    provider = start(server)
    server.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
    assert server.stored_texts() == ["My cat is called Minka."]
    turn(provider, "My cat is called Minka.", "k1", attempt=2)
    assert server.stored_texts() == ["My cat is called Minka."]


def test_an_attempt_is_found_by_its_time_in_the_local_program(local: LocalDouble, start: Start) -> None:
    """Other words at another time are another turn."""
    provider = start(local)
    local.lose_next_answer()
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1", timestamp=1_700_000_000.0)
    turn(provider, "My cat is called Minka.", "k1", timestamp=1_700_000_000.0, attempt=2)
    turn(provider, "My dog is called Rex.", "k2", timestamp=1_700_000_001.0, attempt=2)
    assert len(local.bodies) == 2
    assert local.stored_texts() == ["My cat is called Minka.", "My dog is called Rex."]


def test_a_turn_is_no_task(double: Double, start: Start) -> None:
    """RetainDB finds what belongs to a task only with its id."""
    turn(start(double), "My cat is called Minka.", "k1")
    double.stored_texts()
    assert "task_id" not in double.bodies[0]


def test_a_job_that_failed_raises(server: ServerDouble, start: Start) -> None:
    """What RetainDB has accepted is not stored yet."""
    server.failing_jobs = 1
    with pytest.raises(TemporaryProviderError, match="could not process"):
        turn(start(server), "My cat is called Minka.", "k1")


def test_a_turn_carries_its_time_its_session_and_its_user(double: Double, start: Start) -> None:
    """The time in the form that RetainDB accepts."""
    turn(start(double), "My cat is called Minka.", "k1", timestamp=1_700_000_000.0)
    double.stored_texts()
    [body] = double.bodies
    assert [body[name] for name in ("project", "session_id", "user_id", "agent_id")] == [
        "memoranda",
        "s1",
        "default",
        "memoranda",
    ]
    assert body["messages"][0]["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_every_user_has_a_project_of_its_own(local: LocalDouble, start: Start, tmp_path: Path) -> None:
    """RetainDB may promote a memory to its whole project."""
    for user in ("", "ana", "ben"):
        turn(start(local, user_id=user), f"The cat of {user or 'the owner'} is called Minka.", f"k{user}")
    assert [memory["project"] for memory in local.memories] == [
        "memoranda",
        "memoranda--default__ana",
        "memoranda--default__ben",
    ]
    names = RetainDBProvider(tmp_path, settings_for(local)).get_status_config({})
    assert (names["project"], names["user_at_vendor"]) == ("memoranda", "default")


def test_the_cloud_needs_a_key_and_the_local_program_does_not(tmp_path: Path, local: LocalDouble) -> None:
    """The error says which variable to set."""
    assert not RetainDBProvider(tmp_path, {}).is_available()
    assert RetainDBProvider(tmp_path, {"base_url": local.url}).is_available()
    with pytest.raises(PermanentProviderError, match="RETAINDB_API_KEY"):
        RetainDBProvider(tmp_path, {}).initialize("s1", hermes_home=str(tmp_path))


def test_curated_entries_are_mirrored_with_their_changes(double: Double, start: Start) -> None:
    """A replaced or removed entry leaves no old copy behind; noise is left out."""
    provider = start(double)
    provider.on_memory_write("add", "user", "Prefers tabs.", {}, idempotency_key="w1")
    provider.on_memory_write("replace", "user", "Prefers spaces.", {"old_text": "Prefers tabs."}, idempotency_key="w2")
    assert double.stored_texts() == ["Prefers spaces."]
    provider.on_memory_write("remove", "user", "", {"old_text": "Prefers spaces."}, idempotency_key="w3")
    assert double.stored_texts() == []


def test_noise_is_not_called_stored(local: LocalDouble, start: Start) -> None:
    """The local program says that it stored a text which it skipped."""
    provider = start(local)
    assert "noise" in call(provider, "retaindb_remember", content="ok")["error"]
    provider.on_memory_write("add", "user", "ok", {}, idempotency_key="w1")
    assert local.stored_texts() == []


def test_a_lost_answer_to_a_memory_write_repeats_nothing(server: ServerDouble, start: Start) -> None:
    """The server knows the key, and the repeated request is the same to the byte."""
    provider = start(server)
    server.lose_next_answer()
    provider.on_memory_write("add", "user", "Prefers tabs.", {}, idempotency_key="w1", timestamp=1_700_000_000.0)
    assert server.stored_texts() == ["Prefers tabs."]


def test_its_tools_remember_search_and_forget(double: Double, start: Start) -> None:
    """A memory of another user cannot be deleted by its id."""
    ana, ben = start(double, user_id="ana"), start(double, user_id="ben")
    memory_id = call(ana, "retaindb_remember", content="Likes green tea.", memory_type="preference")["memory_id"]
    for tool in ("retaindb_search", "retaindb_context"):
        assert call(ana, tool, query="green tea")["results"][0]["content"] == "Likes green tea."
        assert "nothing" in call(ben, tool, query="green tea")["result"]
    assert call(ana, "retaindb_profile")["count"] == 1
    assert "error" in call(ben, "retaindb_forget", memory_id=memory_id)
    assert "result" in call(ana, "retaindb_forget", memory_id=memory_id)
    assert double.stored_texts() == []


def test_a_memory_that_the_profile_does_not_list_can_be_forgotten(server: ServerDouble, start: Start) -> None:
    """The list is limited; the server says whose a memory is."""
    provider = start(server)
    first = call(provider, "retaindb_remember", content="The oldest fact.")["memory_id"]
    for number in range(250):
        server.add({"project": "memoranda", "user_id": "default", "session_id": "s9", "content": f"fact {number}"})
    assert "result" in call(provider, "retaindb_forget", memory_id=first)
    foreign = server.add({"project": "memoranda", "user_id": "ben", "session_id": "s9", "content": "of another"})
    assert "error" in call(provider, "retaindb_forget", memory_id=foreign["id"])


def test_a_text_that_a_database_refuses_is_cleaned(double: Double, start: Start) -> None:
    """Without the NUL that PostgreSQL does not store, and without half a character."""
    turn(start(double), "My cat\0 is called Minka\ud800.", "k1")
    assert double.stored_texts() == ["My cat is called Minka?."]


@pytest.mark.disk  # No plugin reads below /dev, where files in memory are.
def test_files_belong_to_their_user(server: ServerDouble, start: Start, tmp_path: Path) -> None:
    """RetainDB shows the files of a whole organization; a path says whose a file is."""
    note = tmp_path.parent / f"{tmp_path.name}-note.txt"
    note.write_text("Käse kaufen\n" * 4_000, "utf-8")
    ana, ben = start(server, user_id="ana"), start(server, user_id="ben")
    file = call(ana, "retaindb_upload_file", local_path=str(note), remote_path="../../lists/shopping.txt", ingest=True)
    assert file["file"]["path"] == "/memoranda/default__ana/lists/shopping.txt"
    assert file["file"]["ingested"]["memories_created"] == 1
    read = call(ana, "retaindb_read_file", file_id="file_1")
    assert read["content"].startswith("Käse kaufen") and len(read["content"]) == 32_000 and read["truncated"]
    assert call(ana, "retaindb_list_files", prefix="lists")["count"] == 1
    assert call(ben, "retaindb_list_files")["files"] == []
    for tool in ("retaindb_read_file", "retaindb_ingest_file", "retaindb_delete_file"):
        assert "no file" in call(ben, tool, file_id="file_1")["error"]
    assert "result" in call(ana, "retaindb_delete_file", file_id="file_1")
    assert server.files == {}


@pytest.mark.disk  # No plugin reads below /dev, where files in memory are.
def test_forget_deletes_uploaded_files(server: ServerDouble, start: Start, tmp_path: Path) -> None:
    """Those of this home; one that is gone already does no harm."""
    note = tmp_path.parent / f"{tmp_path.name}-note.txt"
    note.write_text("Buy cheese.")
    provider = start(server)
    for name in ("a.txt", "b.txt"):
        call(provider, "retaindb_upload_file", local_path=str(note), remote_path=name)
    call(provider, "retaindb_delete_file", file_id="file_1")
    assert provider.forget()["deleted"] == ["2 files"]
    assert server.files == {}


@pytest.mark.disk  # No plugin reads below /dev, where files in memory are.
@pytest.mark.parametrize("name", [".env", "id_rsa", "missing.txt"])
def test_files_with_credentials_are_not_sent(name: str, server: ServerDouble, start: Start, tmp_path: Path) -> None:
    """Nor files of the home, nor what is no file."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    for folder in (outside, tmp_path):
        if name != "missing.txt":
            (folder / name).write_text("KEY=1")
        assert "error" in call(start(server), "retaindb_upload_file", local_path=str(folder / name))
    (tmp_path / "MEMORY.md").write_text("a memory")
    assert "home" in call(start(server), "retaindb_upload_file", local_path=str(tmp_path / "MEMORY.md"))["error"]
    assert server.files == {}


def test_the_local_program_has_no_files(local: LocalDouble, start: Start) -> None:
    """The answer of its tools says so."""
    assert "404" in call(start(local), "retaindb_list_files")["error"]
    assert "no files" in call(start(local), "retaindb_read_file", file_id="f1")["error"]


def test_forget_reports_what_is_still_processed(server: ServerDouble, start: Start) -> None:
    """It can be repeated."""
    provider = start(server)
    turn(provider, "My cat is called Minka.", "k1")
    server.jobs["j9"] = {"status": "PENDING", "body": server.bodies[0]}
    report = provider.forget()
    assert any("still processed" in line for line in report["remaining"])
    assert server.memories == []


def test_forget_goes_through_all_pages(local: LocalDouble, start: Start) -> None:
    """The local program lists two hundred memories at most."""
    fields = {"project": "memoranda", "user_id": "default", "session_id": "s1"}
    for number in range(450):
        local.add({**fields, "content": f"fact {number}"})
    start(local).forget()
    assert local.memories == []


def test_the_double_answers_in_the_form_of_the_program(local: LocalDouble, start: Start) -> None:
    """Every field that the provider reads is where the real program was recorded to put it."""
    turn(start(local), "My sister Clara lives in Lisbon.", "k1")
    hit = local.show_hit(local.memories[0])
    real = read_recording(local.recorded, "search")["body"]["results"][0]
    assert set(hit) <= set(real)
    used = {"id", "content", "user_id", "session_id", "metadata", "created_at", "project"}
    assert used <= set(real["memory"]) and used <= set(local.memories[0])
    said = read_recording(local.recorded, "ingest")
    assert said["body"]["memories"][0]["metadata"]["timestamp"] == said["request"]["body"]["messages"][0]["timestamp"]


@pytest.mark.parametrize("answer", [[], {}, {"results": [1]}, {"memories": 1}, "?", {"success": False}])
def test_an_answer_without_sense_is_no_acceptance(answer: Any, local: LocalDouble, start: Start) -> None:
    """The turn is kept."""
    provider = start(local)
    local.ingest = lambda exchange, body: exchange.answer(200, answer)  # type: ignore[method-assign]
    with pytest.raises(TemporaryProviderError):
        turn(provider, "My cat is called Minka.", "k1")
