"""The client of a service on another machine, with the interface of the library.

    import memoranda

    with memoranda.connect("https://memory.example.com", key) as memory:
        with memory.session() as session, session.turn("How did we fix the deadlock?") as turn:
            turn.done(your_model(turn.messages, session.tools))
        memory.search("deadlock", since="30d")

`connect_async` does the same for asyncio. Both need `memoranda[client]`.
"""

from memoranda.api.client.async_memory import AsyncRemoteMemory as AsyncRemoteMemory
from memoranda.api.client.async_memory import connect_async as connect_async
from memoranda.api.client.memory import RemoteMemory as RemoteMemory
from memoranda.api.client.memory import connect as connect
