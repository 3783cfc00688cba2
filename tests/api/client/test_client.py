"""The client repeats what is safe to repeat, and reports everything else as an error of the library."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

import memoranda
from memoranda.agent.model_messages import INTERRUPTED_ANSWER
from memoranda.api.client.async_memory import AsyncRemoteSession
from memoranda.api.client.memory import RemoteMemory
from memoranda.api.client.transport import Transport
from memoranda.errors import AccessError, ServiceError, SessionBusyError, SessionError, UnknownSessionError
from tests.service.http.running_service import RunningService
from tests.timing import GIVE_UP, without_waiting


@contextmanager
def lossy_network(address: tuple[str, int], lose: int) -> Iterator[str]:
    """A way to a service on which the first answers are lost after the service has done its work."""
    left = [lose]

    def forward(client: socket.socket) -> None:
        with client, socket.create_connection(address, GIVE_UP) as service:
            while request := _read_message(client):
                service.sendall(request)
                answer = _read_message(service)
                if left[0] > 0:
                    left[0] -= 1
                    return
                client.sendall(answer)

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=forward, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _read_message(sender: socket.socket) -> bytes:
    """One whole request or answer, or nothing when the sender has closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = sender.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(lengths[0] if lengths else 0):
        body += sender.recv(65_536)
    return head + b"\r\n\r\n" + body


@pytest.mark.slow
def test_a_lost_answer_does_not_record_anything_twice(service: RunningService, user: str) -> None:
    """The client sends the request again, and the service recognises it."""
    with lossy_network(service.address, lose=2) as url, memoranda.connect(url, service.key(user=user)) as memory:
        with memory.session() as session, session.turn("Once?") as turn:
            turn.done("Once.")
        assert [message["content"] for message in session.conversation()] == ["Once?", "Once."]


@pytest.mark.slow
def test_a_service_that_was_killed_records_a_repeated_turn_once(service: RunningService, user: str) -> None:
    """Although it did the work and could not store the answer to the request."""
    headers = {"Authorization": f"Bearer {service.key(user=user)}"}

    def post(path: str, key: str, body: dict[str, Any]) -> Any:
        url = f"{service.url}/v1/sessions/{user}/turns{path}"
        sent = httpx2.post(url, json=body, headers=headers | {"Idempotency-Key": key}, timeout=GIVE_UP, trust_env=False)
        assert sent.status_code == 201, sent.text
        return sent.json()

    def kill() -> None:
        service.service.conversations.close()
        with service.service.database.open().writing() as connection:
            connection.execute("DELETE FROM answers")

    begun = post("", "k1", {"content": "Once?"})
    kill()
    assert post("", "k1", {"content": "Once?"}) == begun
    answer = {"messages": [{"role": "assistant", "content": "Once."}]}
    done = post(f"/{begun['message_id']}/done", "k2", answer)
    kill()
    assert post(f"/{begun['message_id']}/done", "k2", answer) == done
    with memoranda.connect(service.url, headers["Authorization"].split()[1]) as memory:
        assert len(memory.session(session_id=user).conversation()) == 2


@pytest.mark.slow
def test_what_is_not_safe_to_repeat_is_sent_once(service: RunningService, user: str) -> None:
    """Undoing twice would undo two turns."""
    key = service.key(user=user)
    with memoranda.connect(service.url, key) as memory:
        session = memory.session()
        for question in ("First?", "Second?"):
            with session.turn(question) as turn:
                turn.done("Yes.")
    with lossy_network(service.address, lose=1) as url, memoranda.connect(url, key) as memory:
        with pytest.raises(ServiceError):
            memory.session(session_id=session.id).undo()
        assert len(memory.session(session_id=session.id).conversation()) == 2


def test_a_service_that_cannot_be_reached_is_an_error_in_bounded_time() -> None:
    """That names the address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with memoranda.connect(url, "mk_x") as memory, pytest.raises(ServiceError, match=url):
        memory.session().undo()


@pytest.mark.parametrize(
    "url", ["memory.example.com", "ftp://host", "https://", "https://user:pw@host", "http://memory.example.com"]
)
def test_an_address_to_which_no_key_may_be_sent_is_refused(url: str) -> None:
    """Above all one without encryption."""
    with pytest.raises(AccessError):
        memoranda.connect(url, "mk_x")


def test_the_errors_are_those_of_the_library(service: RunningService, remote: RemoteMemory) -> None:
    """So that the same program can use either."""
    with memoranda.connect(service.url, "mk_000000000000_" + "x" * 43) as stranger, pytest.raises(AccessError):
        stranger.entries()
    with memoranda.connect(service.url, service.key("read")) as reader, pytest.raises(AccessError):
        reader.session().turn("Hello?")
    with pytest.raises(UnknownSessionError):
        remote.sessions.get_messages("no such session")
    with pytest.raises(SessionError):
        remote.search("x", limit=1_000)
    with pytest.raises(SessionError):
        remote.session().turn({1, 2})


def test_a_turn_is_interrupted_when_its_client_stays_away(service: RunningService, remote: RemoteMemory) -> None:
    """Then the conversation is free; the late answer is recorded all the same."""
    session = remote.session()
    turn = session.turn("First?")
    service.service.conversations.close()
    with session.turn("Second?", wait=0) as second:
        turn.done("First.")
        second.done("Second.")
    contents = [message["content"] for message in session.conversation()]
    assert contents == ["First?", INTERRUPTED_ANSWER, "Second?", "First.", "Second."]


def test_the_same_for_asyncio(service: RunningService, user: str) -> None:
    """A conversation, memory and search, without blocking the loop."""

    async def converse() -> None:
        async with memoranda.connect_async(service.url, service.key(user=user)) as memory:
            assert (await memory.remember("Ana keeps bees."))["success"]
            assert "bees" in (await memory.recall("Who keeps bees?"))["block"]
            async with memory.session(source="bot") as session:
                assert "bees" in session.prompt and {"memory"} <= {tool.name for tool in session.tools}
                async with session.turn("Where are the bees?") as turn:
                    assert len(await turn.messages()) == 1
                    with pytest.raises(SessionBusyError):
                        await memory.session(session_id=session.id).turn("Hello?", wait=0)
                    await turn.record("assistant", "Let me look.")
                    await turn.done("Behind the house.")
                assert len(await session.conversation()) == 3
                undone = await session.undo()
                assert undone is not None and undone.text == "Where are the bees?"
            async with session.turn("Again?") as turn:
                await turn.done("Behind the house, still.")
            found: Any = await memory.search("house")
            assert found["count"] == 1
            assert [row["id"] for row in await memory.sessions.list_sessions_rich()] == [session.id]
            assert await memory.entries() == ("Ana keeps bees.",)

    asyncio.run(asyncio.wait_for(converse(), GIVE_UP))


@pytest.mark.slow
def test_many_conversations_at_once(service: RunningService, user: str) -> None:
    """Each is complete and in order."""

    async def converse() -> None:
        async with memoranda.connect_async(service.url, service.key(user=user)) as memory:

            async def one(number: int) -> None:
                session = memory.session(session_id=f"{user}-{number}")
                async with session.turn(f"Question {number}?") as turn:
                    await turn.done(f"Answer {number}.")
                found = [message["content"] for message in await session.conversation()]
                assert found == [f"Question {number}?", f"Answer {number}."]

            await asyncio.gather(*(one(number) for number in range(12)))

    asyncio.run(asyncio.wait_for(converse(), GIVE_UP))


@contextmanager
def silent_service() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_cancellation_takes_effect_while_the_service_does_not_answer() -> None:
    """For reading, writing, waiting for events and the start of a turn; closing waits for none of them."""

    async def give_up(url: str) -> None:
        async with memoranda.connect_async(url, "k") as memory:
            session = memory.session()
            calls: list[Callable[[], Awaitable[Any]]] = [
                memory.entries,
                lambda: memory.remember("Ana keeps bees."),
                lambda: anext(memory.follow()),
                lambda: session.turn("Hello?"),
            ]
            for call in calls:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await call()

    with silent_service() as url, without_waiting():
        asyncio.run(give_up(url))


def test_a_turn_that_begins_after_its_task_was_cancelled_is_left(
    service: RunningService, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the conversation is not busy until the service gives the turn up."""
    proceed, write = threading.Event(), Transport.write

    def write_later(self: Transport, method: str, path: str, body: Any = None) -> Any:
        assert proceed.wait(GIVE_UP)
        return write(self, method, path, body)

    async def converse() -> None:
        async with memoranda.connect_async(service.url, service.key(user=user)) as memory:
            session = await memory.session()
            with monkeypatch.context() as patched:
                patched.setattr(Transport, "write", write_later)
                starting = asyncio.create_task(_begin(session, "First?"))
                await asyncio.sleep(0.01)
                starting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await starting
                proceed.set()
                while not await session.conversation():
                    await asyncio.sleep(0.01)
            async with session.turn("Second?", wait=GIVE_UP) as turn:
                await turn.done("Yes.")
            said = [message["content"] for message in await session.conversation()]
            assert said == ["First?", INTERRUPTED_ANSWER, "Second?", "Yes."]

    asyncio.run(asyncio.wait_for(converse(), GIVE_UP))


async def _begin(session: AsyncRemoteSession, text: str) -> None:
    await session.turn(text)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["connect", "connect_async"])
def test_connecting_loads_no_part_of_the_library_that_it_does_not_need(function: str) -> None:
    """A client starts fast, and a program that does not connect loads no HTTP client."""
    program = (
        "import sys, memoranda\n"
        "assert 'httpx2' not in sys.modules\n"
        f"memoranda.{function}('http://127.0.0.1:1', 'k')\n"
        "loaded = {name.partition('.')[2] for name in sys.modules if name.startswith('memoranda.')}\n"
        "rest = {name for name in loaded if not name.startswith(('api.client', 'api.aio.wrappers'))}\n"
        "needed = {'errors', 'types', 'support.json_object', 'support.lazy_dataclass', 'support.tool'}\n"
        "assert rest <= needed | {'api', 'api.aio', 'support'}, rest\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=GIVE_UP)
