"""Whole sessions over HTTP, the prompt, recall, and who did what."""

import json
from pathlib import Path

import httpx
import pytest

from tests.service.http.running_service import RunningService, run_service

pytestmark = pytest.mark.slow

_LINES = {"Content-Type": "application/x-ndjson"}


def _talk(client: httpx.Client, session_id: str, *texts: str) -> None:
    assert client.post("/v1/sessions", json={"id": session_id}).status_code == 201
    messages = [{"role": "user", "content": text} for text in texts]
    assert client.post(f"/v1/sessions/{session_id}/messages", json={"messages": messages}).status_code == 201


def test_an_export_is_imported_whole(client: httpx.Client, tmp_path: Path) -> None:
    """Byte for byte the same texts, for another user in another home; a second import adds nothing."""
    _talk(client, "move-1", "a \0 b", "数据")
    _talk(client, "move-2", "c")
    raw = b'{"messages":[{"role":"user","content":"half \\ud800"}]}'
    client.post("/v1/sessions/move-2/messages", content=raw, headers={"Content-Type": "application/json"})
    exported = client.get("/v1/export")
    assert [json.loads(line)["id"] for line in exported.content.splitlines()] == ["move-1", "move-2"]
    with run_service(tmp_path / "home") as other:
        target = other.client(other.key(tenant="acme", user="bo"))
        first = target.post("/v1/import", content=exported.content, headers=_LINES).json()
        assert (first["imported"], first["messages"], first["errors"]) == (2, 4, [])
        second = target.post("/v1/import", content=exported.content, headers=_LINES).json()
        assert (second["imported"], second["unchanged"], second["messages"]) == (0, 2, 0)
        texts = [
            message["content"]
            for name in ("move-1", "move-2")
            for message in target.get(f"/v1/sessions/{name}/messages").json()["messages"]
        ]
    assert texts == ["a \0 b", "数据", "c", "half \ud800"]


def test_an_export_continues_after_a_session(client: httpx.Client) -> None:
    """So that a client that lost the connection does not begin again."""
    for number in range(3):
        _talk(client, f"resume-{number}", "x")
    rest = client.get("/v1/export", params={"after": "resume-0"}).content.splitlines()
    assert [json.loads(line)["id"] for line in rest] == ["resume-1", "resume-2"]
    assert client.get("/v1/export", params={"after": "nothing"}).status_code == 404


def test_lines_that_are_no_sessions_are_reported(client: httpx.Client) -> None:
    """With their numbers; the others are imported."""
    lines = b'not json\n{"id":"good","source":"x","messages":[]}\n[1]\n{"id":"bad"}\n'
    answer = client.post("/v1/import", content=lines, headers=_LINES).json()
    assert (answer["imported"], len(answer["errors"])) == (1, 3)
    assert [error.get("line") for error in answer["errors"]] == [1, 3, None]


def test_an_import_cannot_copy_a_message_of_another_user(client: httpx.Client, shared_service: RunningService) -> None:
    """`copy_of` counts only for messages of the same import."""
    other = shared_service.client(shared_service.key(user="copied"))
    _talk(other, "copied", "the secret of the other user")
    message_id = other.get("/v1/sessions/copied/messages").json()["messages"][0]["id"]
    message = {"role": "user", "content": None, "copy_of": message_id, "content_format": "same", "timestamp": 1}
    line = json.dumps({"id": "thief", "source": "x", "messages": [message]}).encode()
    client.post("/v1/import", content=line, headers=_LINES)
    assert "secret" not in client.get("/v1/sessions/thief/messages", params={"all": "true"}).text


def test_a_prompt_stays_the_same_after_it_was_read(client: httpx.Client) -> None:
    """Whatever is remembered meanwhile; the next session has it."""
    _talk(client, "frozen", "hello")
    first = client.get("/v1/prompt", params={"session": "frozen"})
    client.post("/v1/memory/memory/entries", json={"text": "The build server is called otter."})
    again = client.get("/v1/prompt", params={"session": "frozen"})
    assert (again.content, again.headers["etag"]) == (first.content, first.headers["etag"])
    _talk(client, "later", "hello")
    assert "otter" in client.get("/v1/prompt", params={"session": "later"}).json()["prompt"]


def test_recall_answers_from_entries_and_conversations(client: httpx.Client) -> None:
    """As one fenced block; nothing is known about what was never said."""
    client.post("/v1/memory/memory/entries", json={"text": "The staging database is Postgres."})
    _talk(client, "recalled", "We moved the staging database in May.")
    found = client.post("/v1/recall", json={"question": "Which staging database do we use?"}).json()
    assert found["known"] and "Postgres" in found["block"] and "May" in found["block"]
    assert found["tokens"] > 10
    assert client.post("/v1/recall", json={"question": "zebra crossing"}).json()["block"] == ""


def test_recent_tells_what_the_user_asked_last(client: httpx.Client) -> None:
    """A service has no working directory that "this" could mean."""
    _talk(client, "latest", "Which ferry goes to Oslo?")
    found = client.get("/v1/recent", params={"limit": 1}).json()
    assert [each["asked"] for each in found["conversations"]] == ["Which ferry goes to Oslo?"]
    assert "Oslo" in found["text"]
    assert client.get("/v1/recent", params={"project": "this"}).status_code == 422


def test_curated_changes_and_deletions_are_in_the_audit_log(shared_service: RunningService) -> None:
    """Who, what and in which request, without any text; a user-bound key sees only what concerns its user."""
    client = shared_service.client(shared_service.key(user="audited"))
    added = client.post("/v1/memory/memory/entries", json={"text": "Likes kites."}, headers={"X-Request-Id": "r-1"})
    _talk(client, "audited", "x")
    client.delete("/v1/sessions/audited")
    page = client.get("/v1/audit").json()["entries"]
    assert [(entry["action"], entry["subject"]) for entry in page] == [
        ("session.delete", "audited"),
        ("memory.add", f"memory change {added.json()['change']}"),
    ]
    assert (page[1]["request_id"], page[1]["user"]) == ("r-1", "audited")
    assert "kites" not in client.get("/v1/audit").text
    stranger = shared_service.client(shared_service.key(user="unaudited"))
    assert stranger.get("/v1/audit").json()["entries"] == []
    tenant = shared_service.client(shared_service.key(tenant="globex"))
    assert all(entry["tenant"] == "globex" for entry in tenant.get("/v1/audit").json()["entries"])


def test_pages_of_the_audit_log_have_every_entry_once(shared_service: RunningService) -> None:
    """The newest first."""
    client = shared_service.client(shared_service.key(user="pages"))
    for number in range(3):
        client.post("/v1/memory/memory/entries", json={"text": f"Entry {number}."})
    first = client.get("/v1/audit", params={"limit": 2}).json()
    second = client.get("/v1/audit", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    subjects = [entry["subject"] for entry in first["entries"] + second["entries"]]
    assert subjects == ["memory change 3", "memory change 2", "memory change 1"]


def test_a_forgotten_text_is_left_nowhere(tmp_path: Path) -> None:
    """Also not in the service's own database, after retried requests."""
    with run_service(tmp_path / "home") as running:
        client = running.client()
        _talk(client, "s", "My code name is Marabou.")
        entry = {"text": "The code name is Marabou."}
        client.post("/v1/memory/memory/entries", json=entry, headers={"Idempotency-Key": "k"})
        listed = client.post("/v1/forget", json={"text": "Marabou", "dry_run": True}).json()
        assert listed["count"] >= 2 and not listed["complete"]
        done = client.post("/v1/forget", json={"text": "Marabou"}).json()
        assert (done["complete"], done["left"], done["problems"]) == (True, [], [])
        assert "Marabou" not in client.get("/v1/export").text
