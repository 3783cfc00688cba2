"""The client has what the library has, or says why not: generated from the public names of both."""

import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, get_args, get_origin

import memoranda
from memoranda.api import session, turn
from memoranda.api.aio import memory as aio_memory
from memoranda.api.aio import session as aio_session
from memoranda.api.aio.wrappers import InThreads
from memoranda.api.client import async_memory, curated, items, memory, session_store
from memoranda.api.client import session as client_session

_LOCAL = "it concerns files of the home or the process that has them"
_NO_ROUTE = "the service has no route for it"
_LOOP = "it is for our own agent loop, which runs where the home is"
MISSING = {
    memoranda.Memory: {
        "agent": _LOOP,
        "preview_prompt": _NO_ROUTE,
        "tools": "tools belong to a session: RemoteSession.tools",
        "call": "tools belong to a session: RemoteSession.call",
    },
    session.Session: {
        "model": _NO_ROUTE,
        "freeze_prompt": "the prompt of a service is always frozen",
        "notices": _LOCAL,
        "external": _LOCAL,
        "allows": _LOOP,
        "begin_turn": _LOOP,
        "distrust_caller": _LOOP,
        "use_model": _LOOP,
        "note_usage": _LOOP,
        "compress": _NO_ROUTE,
        "title": _NO_ROUTE,
        "rename": _NO_ROUTE,
        "revert": _NO_ROUTE,
        "branch": _NO_ROUTE,
        "todos": _NO_ROUTE,
        "reset": _NO_ROUTE,
        "switch": _NO_ROUTE,
        "for_review": _LOOP,
    },
    turn.Turn: {
        "stream": "a stream would pass twice over the network; done takes the whole answer",
        "begin_stream": "an answer is recorded with done, or a part of it with record",
        "break_off": "a part of the answer is recorded with record",
        "done_streaming": "see stream",
        "is_open": _LOOP,
        "is_open_in_this_thread": _LOOP,
    },
}
_CLIENTS = {
    memoranda.Memory: memory.RemoteMemory,
    session.Session: client_session.RemoteSession,
    turn.Turn: client_session.RemoteTurn,
}
# What the asyncio classes of an opened home do in another way.
_OTHERWISE = {
    (memoranda.AsyncMemory, "agent"): "its text is read with stream instead of on_text",
    (memoranda.AsyncSession, "turn"): "a task that continues a turn after a crash is not offered",
    (memoranda.AsyncSession, "undo"): "it never waits",
}


def _wrappers(module: ModuleType) -> dict[type, type]:
    """The asyncio classes of a module, by the classes whose methods they run in threads."""
    found = {}
    for owner in vars(module).values():
        for base in getattr(owner, "__orig_bases__", ()):
            if get_origin(base) is InThreads and owner.__module__ == module.__name__:
                found[get_args(base)[0]] = owner
    return found


_REMOTE = _wrappers(async_memory)
_LOCAL_WRAPPERS = _wrappers(aio_memory) | _wrappers(aio_session)


def _public(owner: type) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def _names(owner: type) -> set[str]:
    """Also the attributes that its constructor sets, such as the id of a session."""
    return _public(owner) | set(re.findall(r"self\.([a-z]\w*)(?:: [^=]+)? =", inspect.getsource(owner)))


def test_every_public_name_of_the_library_is_in_the_client_or_has_a_reason() -> None:
    """A new method must be offered, or be listed here with the reason."""
    for library, left_out in MISSING.items():
        missing = _public(library) - _names(_CLIENTS[library])
        assert missing == set(left_out), sorted(missing ^ set(left_out))


def test_every_class_of_the_client_has_an_asyncio_form() -> None:
    """Also those that a client returns."""
    modules = (memory, client_session, session_store, curated, items)
    offered = {found for module in modules for name, found in vars(module).items() if name.startswith("Remote")}
    assert set(_REMOTE) == offered


def test_the_asyncio_form_has_every_public_name() -> None:
    """So that a program can change from one to the other."""
    for threads in _REMOTE:
        assert _names(threads) <= _public(_REMOTE[threads])


def test_both_colours_have_the_same_parameters() -> None:
    """Also those of an opened home, which has fewer methods for asyncio."""
    for pair in [*_REMOTE.items(), *_LOCAL_WRAPPERS.items()]:
        for name in _public(pair[0]) & _public(pair[1]):
            one, other = (inspect.getattr_static(owner, name) for owner in pair)
            if inspect.isfunction(one) and (pair[1], name) not in _OTHERWISE:
                assert _parameters(one) == _parameters(other), name


def _parameters(method: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
