"""The asyncio interface: `memoranda.open_async()` opens an `AsyncMemory`, whose calls never block the event loop.

The synchronous classes do the work, in threads; nothing is implemented twice. A call that writes is finished even when
its task is cancelled: the cancellation waits until the write is durable, so no lock and no half-recorded step is left.
"""
