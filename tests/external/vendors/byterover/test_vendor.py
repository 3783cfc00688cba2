"""Turns, recall, extraction and tools of ByteRover, with a real program in place of `brv`."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import TemporaryProviderError
from memoranda.external.vendors.byterover.brv_program import BrvProgram, NoModelError
from memoranda.external.vendors.byterover.context_tree import ContextTree
from memoranda.external.vendors.byterover.vendor import ByteRoverProvider
from tests.external.vendors.byterover.double import BrvDouble
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "I prefer tabs."},
    {"role": "tool", "content": "not said by anyone"},
    {"role": "assistant", "content": "Noted."},
]


@pytest.fixture
def brv(tmp_path: Path) -> BrvDouble:
    double = BrvDouble(tmp_path / "program")
    double.home = tmp_path / "home"
    double.home.mkdir()
    return double


@pytest.fixture
def provider(brv: BrvDouble) -> Iterator[ByteRoverProvider]:
    provider = _start(brv)
    yield provider
    provider.shutdown()


def _start(brv: BrvDouble, user_id: str = "", **settings: Any) -> ByteRoverProvider:
    provider = ByteRoverProvider(brv.home, {"program": str(brv.program), "timeout": GIVE_UP, **settings})
    provider.initialize("s1", hermes_home=str(brv.home), user_id=user_id)
    return provider


def _turn(provider: ByteRoverProvider, text: str, key: str = "k1", **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, timestamp=1_790_000_000.0, **facts)


def _call(provider: ByteRoverProvider, name: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(provider.handle_tool_call(name, args, session_id="s1"))
    assert isinstance(answer, dict)
    return answer


def test_a_turn_is_a_file_that_brv_could_have_written(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """With its front matter, in a project that only the user can read; no command runs for it."""
    _turn(provider, "My cat is called Miso.")
    [file] = (brv.home / "byterover" / ".brv" / "context-tree").rglob("*.md")
    assert file.read_text("utf-8") == (
        "---\ntitle: Turn of 2026-09-21 14.13.20\ntags: [memoranda]\nrelated: []\nkeywords: []\n"
        "createdAt: '2026-09-21T14:13:20.000Z'\nupdatedAt: '2026-09-21T14:13:20.000Z'\n---\n"
        "**User:** My cat is called Miso.\n\n**Assistant:** Noted.\n"
    )
    assert json.loads((brv.home / "byterover" / ".brv" / "config.json").read_text("utf-8"))["version"] == "0.0.1"
    assert brv.calls == []


def test_recall_comes_from_a_search_after_the_turn_before(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """A command takes longer than a turn waits; the file's own text and time are recalled, not an excerpt."""
    _turn(provider, "My cat is called Miso.")
    assert provider.prefetch("what is my cat called", session_id="s1") == ""
    provider.queue_prefetch("what is my cat called", session_id="s1")
    recalled = provider.prefetch("anything", session_id="s1")
    assert recalled.startswith("- **User:** My cat is called Miso. **Assistant:** Noted. (ByteRover, turn, 2026-09-21")
    assert [call["arguments"][0] for call in brv.calls] == ["search"]


def test_a_miss_recalls_nothing(provider: ByteRoverProvider) -> None:
    """brv prints a sentence about it, which is no memory."""
    _turn(provider, "My cat is called Miso.")
    provider.queue_prefetch("zebra quantum", session_id="s1")
    assert provider.prefetch("zebra quantum", session_id="s1") == ""


def test_brv_does_not_update_itself(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """The variables that turn it off reach the program, and not the environment of this process."""
    provider.queue_prefetch("cat", session_id="s1")
    assert [(call["BRV_DISABLE_AUTOUPDATE"], call["NO_UPDATE_NOTIFIER"]) for call in brv.calls] == [("1", "1")]
    assert "BRV_DISABLE_AUTOUPDATE" not in os.environ


def test_a_query_cannot_become_an_option(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """It comes after `--`."""
    provider.queue_prefetch("--limit 50 cat", session_id="s1")
    assert brv.calls[0]["arguments"][-2:] == ["--", "--limit 50 cat"]


def test_a_command_that_hangs_is_killed_with_its_children(brv: BrvDouble, tmp_path: Path) -> None:
    """Without a network, the real brv tries for minutes to start its daemon."""
    brv.set(fault="slow")
    began = time.monotonic()
    with pytest.raises(TemporaryProviderError, match="ByteRover's servers cannot be reached"):
        BrvProgram(str(brv.program), tmp_path).run("search", text="cat", timeout=1)
    assert time.monotonic() - began < GIVE_UP
    group = brv.calls[0]["pid"]
    wait_until(lambda: not _group_exists(group))


def test_shutdown_kills_running_commands(brv: BrvDouble) -> None:
    """A session that ends does not leave a search behind."""
    brv.set(fault="slow")
    provider = _start(brv)
    provider.on_pre_compress(MESSAGES, session_id="s1")
    wait_until(lambda: brv.calls)
    provider.shutdown()
    wait_until(lambda: not _group_exists(brv.calls[0]["pid"]))


def test_a_session_is_extracted_once(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """What users and assistants said goes to brv's model; a repeated end does not."""
    for attempt in (1, 2):
        provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end", attempt=attempt)
    [call] = [call for call in brv.calls if call["arguments"][0] == "curate"]
    assert call["arguments"][-1].startswith("[USER] I prefer tabs.\n[ASSISTANT] Noted.\n(memoranda ")


def test_an_extraction_whose_answer_was_lost_is_not_repeated(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """The history of brv shows that it was completed."""
    brv.set(lose_answer=True)
    with pytest.raises(TemporaryProviderError, match="no answer"):
        provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end", attempt=1)
    brv.set(lose_answer=False)
    provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end", attempt=2)
    assert [call["arguments"][:2] for call in brv.calls] == [["curate", "--timeout"], ["curate", "view"]]


def test_without_a_model_nothing_is_extracted_and_nothing_fails(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """The turns are stored, so the end of a session need not wait for a model."""
    brv.set(model=False)
    provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    assert brv.stored_texts() == []


def test_extraction_can_be_turned_off(brv: BrvDouble) -> None:
    """It costs tokens of brv's model."""
    provider = _start(brv, auto_extract=False)
    provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    assert provider.on_pre_compress(MESSAGES, session_id="s1") == ""
    provider.shutdown()
    assert brv.calls == []


def test_knowledge_is_extracted_before_a_compression(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """In the background: the compression does not wait for brv's model."""
    assert provider.on_pre_compress(MESSAGES, session_id="s1") == ""
    wait_until(lambda: any("I prefer tabs." in text for text in brv.stored_texts()))
    # A session also ends when it is compressed, with the same messages.
    provider.on_session_end(MESSAGES, session_id="s1", idempotency_key="end")
    assert [call["arguments"][0] for call in brv.calls] == ["curate"]


def test_curated_writes_are_mirrored(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """An entry that is replaced or removed leaves nothing behind."""
    provider.on_memory_write("add", "user", "Likes tea.", {}, idempotency_key="m1")
    provider.on_memory_write("replace", "user", "Likes coffee.", {"old_text": "Likes tea."}, idempotency_key="m2")
    assert [text.splitlines()[-1] for text in brv.stored_texts()] == ["Likes coffee."]
    provider.on_memory_write("remove", "user", "", {"old_text": "Likes coffee."}, idempotency_key="m3")
    assert brv.stored_texts() == []


def test_every_user_has_a_project_of_their_own(brv: BrvDouble) -> None:
    """brv cannot limit a search to a part of a tree."""
    for user in ("", "ana@home"):
        provider = _start(brv, user)
        _turn(provider, "My cat is called Miso.")
        provider.shutdown()
    assert (brv.home / "byterover" / ".brv" / "context-tree").is_dir()
    assert (brv.home / "byterover-users" / "default__ana_40home" / ".brv" / "context-tree").is_dir()


def test_an_existing_project_can_be_used(brv: BrvDouble, tmp_path: Path) -> None:
    """Its knowledge is recalled; other users still have projects of their own."""
    note = tmp_path / "code" / ".brv" / "context-tree" / "facts" / "cats.md"
    note.parent.mkdir(parents=True)
    note.write_text("The cat of the office is called Miso.", "utf-8")
    for user, expected in (("", "(ByteRover, knowledge, score"), ("ana", "")):
        provider = _start(brv, user, project=str(tmp_path / "code"))
        provider.queue_prefetch("cat of the office", session_id="s1")
        recalled = provider.prefetch("cat of the office", session_id="s1")
        assert expected in recalled and bool(recalled) is not bool(user)
        provider.shutdown()


def test_the_tools_have_the_names_and_arguments_of_the_design(provider: ByteRoverProvider) -> None:
    """Prompts and habits of models depend on them."""
    tools = {schema["name"]: schema["parameters"] for schema in provider.get_tool_schemas()}
    assert {name: list(tool["properties"]) for name, tool in tools.items()} == {
        "brv_query": ["query"],
        "brv_curate": ["content"],
        "brv_status": [],
    }


def test_a_query_is_answered_by_brvs_model_or_by_a_search(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """Without a model, the tool says so and returns what a search finds."""
    _turn(provider, "My cat is called Miso.")
    assert _call(provider, "brv_query", query="cat called")["result"]
    brv.set(model=False)
    found = _call(provider, "brv_query", query="cat called")
    assert "Miso" in found["results"][0]["text"] and "No model is connected" in found["note"]


def test_curating_says_what_was_stored(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """brv says success even if its model stored nothing; the tool does not."""
    assert _call(provider, "brv_curate", content="We use Postgres.") == {
        "status": "stored",
        "created": ["facts/notes/note_0.md"],
        "updated": [],
    }
    assert "stored nothing" in _call(provider, "brv_curate", content="nothing worth keeping")["error"]
    brv.set(model=False)
    assert "No model is connected" in _call(provider, "brv_curate", content="We use Postgres.")["error"]


def test_the_status_names_version_and_tree(provider: ByteRoverProvider) -> None:
    """As the real program printed it."""
    status = _call(provider, "brv_status")
    assert status["cliVersion"] == "3.14.0" and status["contextTreeDir"].endswith(".brv/context-tree")
    assert "brv 3.14.0 answers" in provider.test_connection()


def test_forget_deletes_files_and_names_what_brv_keeps(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """Turns, mirrored entries and files that brv created for them go; its history stays, and is named."""
    _turn(provider, "My cat is called Miso.")
    provider.on_memory_write("add", "user", "Likes tea.", {"session_id": "s1"}, idempotency_key="m1")
    _call(provider, "brv_curate", content="We use Postgres.")
    tree = ContextTree(brv.home / "byterover")
    backup = tree.root.parent / "review-backups" / "facts" / "notes" / "note_0.md"
    backup.parent.mkdir(parents=True)
    backup.write_text("We use MySQL.", "utf-8")
    report = provider.forget()
    assert brv.stored_texts() == [] and not backup.exists()
    assert report["remaining"] == [
        "the history of 'brv curate' in brv's own data directory, with the texts it was given"
    ]


def test_forget_keeps_what_has_other_sources(provider: ByteRoverProvider, brv: BrvDouble) -> None:
    """A file that one conversation created and another one changed stays, and is named."""
    _call(provider, "brv_curate", content="We use Postgres.")
    (brv.folder / "history.json").unlink()
    changed = json.loads(provider.handle_tool_call("brv_curate", {"content": "And Redis."}, session_id="s2"))
    assert changed["updated"] == ["facts/notes/note_0.md"]
    report = provider.forget(["s1"])
    assert brv.stored_texts() == ["And Redis."]
    assert any("facts/notes/note_0.md" in line for line in report["remaining"])


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd", "a/../../secret.md", ""])
def test_files_outside_the_tree_are_neither_read_nor_deleted(tmp_path: Path, path: str) -> None:
    """Whatever a program says about its paths."""
    tree = ContextTree(tmp_path / "project")
    tree.create()
    secret = tmp_path / "project" / ".brv" / "secret.md"
    secret.write_text("secret", "utf-8")
    assert tree.read(path) is None
    tree.delete(path)
    assert secret.exists()


def test_a_command_that_needs_a_model_says_so(brv: BrvDouble, tmp_path: Path) -> None:
    """As an error of its own, because other commands work without one."""
    brv.set(model=False)
    with pytest.raises(NoModelError, match="brv providers connect"):
        BrvProgram(str(brv.program), tmp_path).run("curate", text="x", timeout=GIVE_UP)


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
