"""Ctrl-C at any point of a write or a read: the next one succeeds, from this thread and from any other."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from tests.storage.interrupts import interrupted_at, moments
from tests.timing import GIVE_UP

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    made = open_store(tmp_path / "state.db", wait=1.0)
    made.sessions.create_session("s", source="cli")
    yield made
    made.close()


def _batch(number: int) -> list[dict[str, object]]:
    return [{"role": "user", "content": f"{part} of {number}"} for part in ("beginning", "end")]


def test_an_interrupted_write_is_complete_or_absent_and_blocks_no_other(store: SessionStore) -> None:
    """This is true wherever the interrupt came; neither another thread nor this one waits for its next write."""
    store.messages.append_messages("s", _batch(-1))
    last = moments(lambda: store.messages.append_messages("s", _batch(0))) + 5
    with ThreadPoolExecutor(1) as other:
        for step in range(1, last):
            interrupted_at(step, lambda: store.messages.append_messages("s", _batch(step)))  # noqa: B023
            other.submit(store.messages.append_message, "s", "assistant", "from another thread").result()
            store.messages.append_message("s", "assistant", "from this thread")
    texts = [str(each["content"]) for each in store.messages.get_messages("s")]
    for said in ("from another thread", "from this thread"):
        assert texts.count(said) == last - 1
    beginnings = [text.split()[-1] for text in texts if text.startswith("beginning")]
    assert beginnings == [text.split()[-1] for text in texts if text.startswith("end")]
    assert last > 50 and len(beginnings) < last


@pytest.mark.slow
def test_an_interrupted_read_blocks_no_other(store: SessionStore) -> None:
    """Others read and write at the same time."""
    store.messages.append_messages("s", _batch(0))
    last = moments(lambda: store.messages.get_messages("s")) + 5
    with ThreadPoolExecutor(1) as other:
        for step in range(1, last):
            interrupted_at(step, lambda: store.messages.get_messages("s"))
            assert len(other.submit(store.messages.get_messages, "s").result(GIVE_UP)) == len(
                store.messages.get_messages("s")
            )
            other.submit(store.messages.append_message, "s", "assistant", "from another thread").result(10)
    assert last > 20
