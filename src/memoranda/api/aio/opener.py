"""`Opener`: something that is opened by `await` or by `async with`."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Protocol, TypeVar


class _Closable(Protocol):
    async def __aexit__(self, *error: Any) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closable)


class Opener(Generic[_Opened]):
    """What `open_async`, `AsyncMemory.session` and `AsyncSession.turn` return: `await` it, or enter it once.

    `async with` also closes what was opened when the block ends; after `await`, the caller closes it.
    """

    def __init__(self, open_it: Callable[[], Awaitable[_Opened]]) -> None:
        self._open = open_it
        self._opened: _Opened | None = None

    def __await__(self) -> Generator[Any, None, _Opened]:
        return self._open().__await__()

    async def __aenter__(self) -> _Opened:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *error: Any) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(*error)
