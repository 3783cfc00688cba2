"""The official clients of mem0, through a real socket."""

import asyncio
import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.http.running_service import RunningService

pytestmark = [
    pytest.mark.slow,
    # Some of these clients cannot be closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No client reports anything to its vendor, or writes outside of the test's directory."""
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    yield
    # Some of these clients cannot be closed; their sockets must not be noticed in a later test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_client_of_mem0(compatible: RunningService, key: str) -> None:
    """Adds, finds, lists, updates, rates and deletes memories, one by one, in batches and by entity."""
    mem0 = pytest.importorskip("mem0")
    errors = pytest.importorskip("mem0.exceptions")
    client = mem0.MemoryClient(api_key=key, host=compatible.url)
    messages = [{"role": "user", "content": "Ana likes oolong tea."}, {"role": "assistant", "content": "Noted."}]
    (event,) = client.add(messages, user_id="ana", metadata={"kind": "taste"})["results"]
    client.add("Bo drives a van.", user_id="bo", agent_id="cook")
    assert event["event"] == "ADD"
    assert client.get(event["id"])["memory"] == "Ana likes oolong tea."
    (hit,) = client.search("Which tea?", filters={"AND": [{"user_id": "ana"}]}, top_k=3, threshold=0.1)["results"]
    assert hit["id"] == event["id"]
    assert 0.1 <= hit["score"] <= 1
    listed = client.get_all(filters={"user_id": "*"}, page=1, page_size=1)
    assert (listed["count"], len(listed["results"]), listed["previous"]) == (2, 1, None)
    assert client.update(event["id"], text="Ana likes green tea.")["memory"] == "Ana likes green tea."
    assert [each["event"] for each in client.history(event["id"])] == ["ADD", "UPDATE"]
    assert client.feedback(event["id"], "positive", "right")["feedback"] == "POSITIVE"
    assert {entity["type"]: entity["name"] for entity in client.users()["results"]} == {"user": "bo", "agent": "cook"}
    client.batch_update([{"memory_id": event["id"], "text": "Ana likes white tea."}])
    client.batch_delete([{"memory_id": event["id"]}])
    with pytest.raises(errors.MemoryNotFoundError):
        client.get(event["id"])
    with pytest.raises(errors.ValidationError):
        client.search("x", filters={"user_id": {"like": "a"}})
    with pytest.raises(errors.MemoryError, match="/v1/export"):
        client.create_memory_export("{}")
    client.delete(client.add("Ana has a cat.", user_id="ana")["results"][0]["id"])
    client.add("Ana has a dog.", user_id="ana")
    client.delete_all(user_id="ana")
    client.delete_users(user_id="bo")
    assert client.get_all()["count"] == 0
    client.add("One more.", user_id="ana")
    client.reset()
    assert client.get_all()["count"] == 0
    with pytest.raises(ValueError, match="API key"):
        mem0.MemoryClient(api_key="mk_wrong", host=compatible.url)


def test_the_asynchronous_client_of_mem0(compatible: RunningService, key: str) -> None:
    """The same routes, from an event loop."""
    mem0 = pytest.importorskip("mem0")

    async def use() -> Any:
        async with mem0.AsyncMemoryClient(api_key=key, host=compatible.url) as client:
            added = await asyncio.gather(*(client.add(f"Fact {number}.", user_id="ana") for number in range(5)))
            assert len({answer["results"][0]["id"] for answer in added}) == 5
            await client.update(added[0]["results"][0]["id"], text="Fact zero.")
            await client.delete(added[1]["results"][0]["id"])
            await client.history(added[0]["results"][0]["id"])
            found = await client.search("zero", filters={"user_id": "ana"})
            return [memory["memory"] for memory in found["results"]], (await client.get_all())["count"]

    assert asyncio.run(use()) == (["Fact zero."], 4)
