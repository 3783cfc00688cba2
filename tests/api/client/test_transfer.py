"""Feed, export and import over the client: the same objects as the library's, in both colours."""

import asyncio
import threading
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.api.client import session_store as transfer
from memoranda.api.client.memory import RemoteMemory
from memoranda.errors import SessionError
from memoranda.support.tool import JsonObject
from tests.service.http.running_service import RunningService
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

# Ids of rows differ from store to store.
_OF_THE_STORE = {"id", "copy_of", "session_id", "user_id", "seq"}


def _compressed(home: Path) -> list[JsonObject]:
    """The export of a conversation with copies of its first messages, a branch, another session, and an item."""
    with memoranda.open(home) as memory:
        db = memory.sessions
        db.create_session("root", "cli")
        db.append_messages("root", [{"role": "user", "content": f"The heron number {n} \ud83d \0"} for n in range(4)])
        db.branch_session("root", "branch")
        db.append_message("branch", "user", "In the branch.")
        db.create_session("other", "phone")
        db.append_message("other", "user", "Something else.")
        memory.items.put(("notes",), "bird", {"name": "heron"})
        return [*db.iter_export(), *db.item_transfer.iter_export()]


def _contents(lines: list[JsonObject]) -> list[Any]:
    found: list[Any] = []
    for line in lines:
        if "item" in line:
            found.append((line["item"]["key"], [version["value"] for version in line["item"]["versions"]]))
            continue
        messages = [
            {name: value for name, value in message.items() if name not in _OF_THE_STORE and value is not None}
            | {"is_copy": message.get("copy_of") is not None}
            for message in line["messages"]
        ]
        found.append((line["source"], line.get("relation"), messages))
    return found


@pytest.mark.parametrize("batch", [1, 8_000_000])
def test_an_export_is_imported_whole_whatever_the_size_of_a_request(
    remote: RemoteMemory, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Copies stay copies, and items come along; the second import adds nothing."""
    monkeypatch.setattr(transfer, "_MAX_BATCH_BYTES", batch)
    monkeypatch.setattr(transfer, "_PAGE", 2)
    exported = _compressed(tmp_path / "home")
    # Ids of sessions belong to one user of a service.
    renamed = [
        line
        if "item" in line
        else line
        | {"id": f"{user}-{line['id']}"}
        | ({"parent_session_id": f"{user}-{line['parent_session_id']}"} if line["parent_session_id"] else {})
        for line in exported
    ]
    report = remote.import_exported(renamed)
    assert (report["imported"], report["items"], report["errors"]) == (3, 1, [])
    assert _contents(list(remote.export())) == _contents(exported)
    assert [line["id"] for line in remote.sessions.iter_export(source="phone")] == [f"{user}-other"]
    assert len(remote.sessions.export_all()) == 3
    again = remote.import_exported(renamed)
    assert (again["imported"], again["unchanged"], again["messages"]) == (0, 3, 0)
    assert remote.sessions.statistics()["sessions"] == 3


def test_what_is_no_export_is_refused(remote: RemoteMemory) -> None:
    """Before anything is sent; an object that is no session is reported by the service."""
    with pytest.raises(SessionError, match="Nothing was imported"):
        remote.import_exported([{"id": "x", "source": "cli", "messages": []}, "no object"])  # type: ignore[list-item]
    assert remote.sessions.export_all() == []
    assert len(remote.import_exported([{"no": "session"}])["errors"]) == 1


def test_the_feed_continues_at_its_cursor(remote: RemoteMemory) -> None:
    """Page by page, and for one who waits, as soon as there is something."""
    with remote.session() as session:
        session.record_all([{"role": "user", "content": text} for text in ("one", "two", "three")])
    events, cursor = remote.feed(start="beginning", limit=2)
    texts = [event["message"]["content"] for event in events if event["type"] == "message"]
    while page := remote.feed(cursor):
        if not page.events:
            break
        texts += [event["message"]["content"] for event in page.events if event["type"] == "message"]
        cursor = page.cursor
    assert texts == ["one", "two", "three"]
    later = threading.Timer(0.2, lambda: session.record("user", "four"))
    later.start()
    messages = (event for event in remote.follow(cursor) if event["type"] == "message")
    assert next(messages)["message"]["content"] == "four"
    later.join(GIVE_UP)


def test_asyncio_has_the_same(service: RunningService, user: str, tmp_path: Path) -> None:
    """Feed, export, import, sessions, entries and another user."""
    line = {"id": f"{user}-s", "source": "cli", "messages": [{"role": "user", "content": "heron", "timestamp": 1e9}]}

    async def use() -> None:
        async with memoranda.connect_async(service.url, service.key("admin", "read", "append", "curate")) as everyone:
            memory = everyone.for_user(user)
            assert (await memory.import_exported([line]))["imported"] == 1
            assert [found["id"] async for found in memory.export()] == [line["id"]]
            assert [found["id"] for found in await memory.sessions.export_all()] == [line["id"]]
            assert (await memory.sessions.get_session(f"{user}-s") or {})["message_count"] == 1
            page = await memory.feed(start="beginning")
            assert any(event["type"] == "message" for event in page.events)
            async for event in memory.follow(start="beginning"):
                assert event["cursor"]
                break
            await memory.remember("Likes herons.", "user")
            (entry,) = (await memory.curated.view("user"))["entries"]
            await memory.curated.remove("user", entry["id"])
            assert await memory.entries("user") == ()

    asyncio.run(use())


def test_another_user_is_another_memory(service: RunningService, user: str) -> None:
    """Over the same connections, if the key is bound to none."""
    with memoranda.connect(service.url, service.key("read", "append", "curate")) as memory:
        first, second = memory.for_user(f"{user}-a"), memory.for_user(f"{user}-b")
        assert first.remember("Likes herons.")["success"]
        assert (first.entries(), second.entries()) == (("Likes herons.",), ())
        assert list(islice(second.export(), 1)) == []
