"""A conversation finds and reads its compressed messages, each once, after any number of continuations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.agent.compression.compressor import CompressedContext, Compressor
from memoranda.agent.compression.trigger import CompressionProgress
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.rotation import Rotated
from memoranda.models.model import ChatModel, Message, Reply
from memoranda.search.tool import SessionSearchTool
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.model import ScriptedModel
from tests.agent.compression.conftest import calls, chatter, good_model, result, said

pytestmark = pytest.mark.slow

WINDOW = 6_000
FACTS = [
    (f"Deploy key {number} lives in /srv/vault{number}/key-{4000 + 7 * number}.pem and expires in {2030 + number}.",
     f"key-{4000 + 7 * number}.pem")
    for number in range(50)
]  # fmt: skip


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "home" / "state.db") as opened:
        yield opened


def compress(db: SessionDB, session_id: str, model: ChatModel | None, *, force: bool = False) -> str:
    """Compress a session as a loop does; returns the id of its continuation."""
    live = db.live_context(session_id)
    done = Compressor().compress(live, model=model, window=WINDOW, session_id=session_id, force=force)
    assert isinstance(done, CompressedContext), done
    number = int(session_id.removeprefix("s")) + 1
    rotated = db.rotate_session(session_id, f"s{number}", done.context, last_seen=done.last_seen)
    assert isinstance(rotated, Rotated)
    return rotated.session_id


def search(db: SessionDB, current: str, **arguments: object) -> JsonObject:
    return SessionSearchTool(lambda: db, current_session_id=current).call(arguments)


def _shown(messages: list[Message]) -> str:
    return "\n".join(str(message.get("content")) for message in messages)


@pytest.mark.parametrize("times", [1, 3, 10])
@pytest.mark.parametrize("kind", ["good", "garbage", "none"])
def test_fifty_facts_are_found_again(db: SessionDB, times: int, kind: str) -> None:
    """In the context or by searching from the conversation itself, with a good summariser, a bad one, or none."""
    db.create_session("s0", "cli", title="Long talk")
    current = "s0"
    rest = list(FACTS)
    share = -(-len(FACTS) // times)
    for _ in range(times):
        model: ChatModel | None = {
            "good": good_model(), "garbage": ScriptedModel([Reply("{" * 50)] * 9), "none": None,
        }[kind]  # fmt: skip
        for fact, _ in rest[:share]:
            db.append_messages(current, [said("user", fact), said("assistant", "Noted.")])
        db.append_messages(current, chatter(30))
        del rest[:share]
        current = compress(db, current, model, force=True)
    task = "Now please rotate every deploy key."
    db.append_message(current, "user", task)
    db.append_messages(current, [message for step in range(40) for message in
                                 (calls(f"c{step}"), result(f"c{step}", "rotated " * 50))])  # fmt: skip
    current = compress(db, current, None, force=True)
    context = _shown(db.get_messages_as_conversation(current))
    assert task in context
    for fact, key in FACTS:
        if fact in context:
            continue
        found = search(db, current, query=key)
        assert found["count"] == 1, (key, found)
        assert fact in [message["content"] for message in found["results"][0]["messages"]]


def test_every_message_is_found_once(db: SessionDB) -> None:
    """Repeated in three sessions, it is one hit in one conversation; the summary is none."""
    db.create_session("s0", "cli", title="Zoo")
    (first,) = db.append_messages("s0", [said("user", "The zebra came first.")])
    db.append_messages("s0", chatter(60))
    current = "s0"
    for _ in range(3):
        current = compress(db, current, None, force=True)
        db.append_messages(current, chatter(60))
    assert [row["id"] for row in db.search_messages("zebra")] == [first]
    elsewhere = search(db, "", query="zebra")
    assert [hit["match_message_id"] for hit in elsewhere["results"]] == [first]
    assert len(search(db, "")["results"]) == 1


def test_what_is_in_context_is_not_found_and_what_is_not_is(db: SessionDB) -> None:
    """The first message stays in context; one of the middle can be found, and read with its neighbours."""
    db.create_session("s0", "cli")
    ids = db.append_messages("s0", [said("user", "The zebra came first."), *chatter(20),
                                    said("user", "The giraffe came in the middle."), *chatter(40)])  # fmt: skip
    middle = ids[41]
    current = compress(db, "s0", good_model(), force=True)
    assert search(db, current, query="zebra")["results"] == []
    (hit,) = search(db, current, query="giraffe")["results"]
    assert hit["match_message_id"] == middle
    scrolled = search(db, current, session_id=current, around_message_id=middle, window=2)
    assert [message["id"] for message in scrolled["messages"]] == ids[39:44]
    refused = search(db, current, session_id=current, around_message_id=ids[0])
    assert refused["reason"] == "in_context"


def test_the_range_that_a_summary_names_can_be_read(db: SessionDB) -> None:
    """By the session and either of the numbers that it gives, after the first compression and after the third."""
    db.create_session("s0", "cli")
    current = "s0"
    for _ in range(3):
        db.append_messages(current, chatter(60))
        live = db.live_context(current)
        done = Compressor().compress(live, model=good_model(), window=WINDOW, session_id=current)
        assert isinstance(done, CompressedContext)
        old, current = current, f"s{int(current[1:]) + 1}"
        db.rotate_session(old, current, done.context, last_seen=done.last_seen)
        assert f'session_id "{old}"' in done.summary
        for number in (done.first_id, done.last_id):
            assert f"around_message_id {done.first_id} or {done.last_id}" in done.summary
            answer = search(db, current, session_id=old, around_message_id=number)
            assert answer["success"], answer
        read = search(db, current, session_id=old)
        assert read["messages"][0]["id"] == done.first_id


def test_shortened_output_can_be_read_in_full(db: SessionDB) -> None:
    """The shortened message names the id to read."""
    db.create_session("s0", "cli")
    output = " ".join(f"line{number}" for number in range(900))
    ids = db.append_messages("s0", [*chatter(2), calls("c"), result("c", f"{output} platypus {output}"), *chatter(3)])
    done = Compressor().compress(db.live_context("s0"), model=None, window=3_000, session_id="s0")
    assert isinstance(done, CompressedContext)
    assert done.how == "pruned"
    db.rotate_session("s0", "s1", done.context, last_seen=done.last_seen)
    cut = ids[5]
    assert f"around_message_id {cut} " in _shown(db.get_messages_as_conversation("s1"))
    (hit,) = search(db, "s1", query="platypus")["results"]
    assert hit["match_message_id"] == cut
    assert search(db, "s1", session_id="s0", around_message_id=cut)["success"]


def test_a_branch_reads_what_it_was_compressed_from(db: SessionDB) -> None:
    """What was said before it branched off belongs to another conversation, and can be read all the same."""
    db.create_session("s0", "cli")
    db.append_messages("s0", chatter(60))
    db.branch_session("s0", "s10")
    current = compress(db, "s10", good_model())
    summary = next(each for each in db.live_context(current) if each.is_summary)
    number = int(str(summary.message["content"]).partition("messages ")[2].split()[0])
    assert search(db, current, session_id="s10", around_message_id=number)["success"]


def test_anti_thrash_notes_survive_restart_and_rotation(db: SessionDB, tmp_path: Path) -> None:
    """A context that stays full is compressed twice and then left alone, though every compression is a new session."""
    limit, used = 4_500, 5_000
    db.create_session("s0", "cli")
    current, compressed = "s0", 0
    for _ in range(8):
        with SessionDB(tmp_path / "home" / "state.db") as restarted:
            restarted.append_messages(current, chatter(40))
            progress = CompressionProgress.from_json(restarted.compression_notes(current)).after_reading(
                used, limit, WINDOW
            )
            if progress.is_due(used, limit, WINDOW):
                compressed += 1
                current = compress(restarted, current, None, force=True)
                progress = progress.after_compression(WINDOW)
            restarted.note_compression(current, progress.to_json())
    assert compressed == 2
