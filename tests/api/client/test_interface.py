"""The client has what the library has, or says why not: generated from the public names of both."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import memoranda
from memoranda.api import session, turn
from memoranda.api.client import async_memory, curated, items, memory, session_store
from tests.cases import cases

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
        "keep_partial_answer": "a part of the answer is recorded with record",
        "done_streaming": "see stream",
        "is_open": _LOOP,
        "is_open_in_this_thread": _LOOP,
    },
}
_CLIENTS = {
    memoranda.Memory: (memory.RemoteMemory, async_memory.AsyncRemoteMemory),
    session.Session: (memory.RemoteSession, async_memory.AsyncRemoteSession),
    turn.Turn: (memory.RemoteTurn, async_memory.AsyncRemoteTurn),
}
_PAIRS = [
    (memory.RemoteMemory, async_memory.AsyncRemoteMemory),
    (memory.RemoteSession, async_memory.AsyncRemoteSession),
    (memory.RemoteTurn, async_memory.AsyncRemoteTurn),
    (session_store.RemoteSessionStore, session_store.AsyncRemoteSessionStore),
    (curated.RemoteCuratedMemory, curated.AsyncRemoteCuratedMemory),
    (items.RemoteItems, items.AsyncRemoteItems),
]


def _public(owner: type) -> set[str]:
    """Methods and properties; attributes that `__init__` sets are the same in all of them."""
    return {name for name in dir(owner) if not name.startswith("_")}


@cases("library", MISSING, ids=lambda owner: owner.__name__)
@cases("colour", [0, 1], ids=["sync", "async"])
def test_every_public_name_of_the_library_is_in_the_client_or_has_a_reason(library: type, colour: int) -> None:
    """A new method must be offered, or be listed here with the reason."""
    client = _CLIENTS[library][colour]
    # Attributes that its constructor sets, such as the id of a session.
    has = _public(client) | set(re.findall(r"self\.([a-z]\w*)(?:: [^=]+)? =", inspect.getsource(client)))
    missing = _public(library) - has
    assert missing == set(MISSING[library]), sorted(missing ^ set(MISSING[library]))


@cases("pair", _PAIRS, ids=lambda pair: pair[0].__name__)
def test_both_colours_have_the_same_methods_with_the_same_parameters(pair: tuple[type, type]) -> None:
    """So that a program can change from one to the other."""
    threads, loop = pair
    assert _public(threads) <= _public(loop)
    for name in _public(threads):
        one, other = (inspect.getattr_static(owner, name) for owner in pair)
        if inspect.isfunction(one) and inspect.isfunction(other) and not _takes_options(other):
            assert _parameters(one) == _parameters(other), name


def _takes_options(method: Callable[..., Any]) -> bool:
    """Whether a method passes any option on, whose names the synchronous one lists."""
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(method).parameters.values())


def _parameters(method: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
