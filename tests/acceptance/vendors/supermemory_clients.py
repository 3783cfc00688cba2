"""Compares our requests to Supermemory with those of its own clients for Python, 3.50.0 and 5.0.1.

    python -m tests.acceptance.vendors.supermemory_clients

No server of Supermemory is published, so this is the closest to it: each client and our wire make the same calls to a
service on this machine that records them. The run fails if method, path, body or key differ.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.supermemory.client import Document, NamespaceClient, SupermemoryClient, V4Client
from tests.acceptance.vendors.machine import install_python_packages

_CACHE = Path(__file__).parents[3] / ".cache" / "vendors" / "supermemory-clients"
_KEY = "sm_key"
# Every field that one of the answers must have.
_ANSWER = {
    "id": "d1", "status": "queued", "results": [], "timing": 1, "total": 0, "searchTime": 1, "count": 1, "errors": [],
    "matches": [], "forgotten": True, "success": True, "deletedCount": 1, "memories": [], "namespaces": [],
    "profile": {"static": [], "dynamic": [], "buckets": {}}, "type": "text", "metadata": {},
    "pagination": {"currentPage": 1, "limit": 1, "totalItems": 0, "totalPages": 0},
    "system": {"status": "done", "createdAt": "2026-11-16T08:00:00Z", "updatedAt": "2026-11-16T08:00:00Z"},
    "namespace": "c1", "deletedDocumentsCount": 1, "deletedMemoriesCount": 1,
}  # fmt: skip
_DATE = "2026-11-16T08:00:00+00:00"
_DOCUMENT = Document("turn-1", "User: Hello.", _DATE, {"type": "conversation_turn"}, "Ana is a vet.")
_V4_METADATA = {"type": "conversation_turn", "date": _DATE}


class Call(NamedTuple):
    """The same call of a client, as an expression in which `c` is the client, and of our wire."""

    client: str
    ours: Callable[[SupermemoryClient], Any]


_SEARCH = Call("", lambda wire: wire.search("c1", "tea", "hybrid", 5, 10))
_CALLS: Mapping[str, tuple[str, type[V4Client] | type[NamespaceClient], tuple[Call, ...]]] = {
    "v4": ("supermemory==3.50.0", V4Client, (
        Call(
            "c.documents.add(content='User: Hello.', container_tag='c1', custom_id='turn-1',"
            f" metadata={_V4_METADATA!r}, entity_context='Ana is a vet.')",
            lambda wire: wire.add("c1", _DOCUMENT, may_be_stored=False),
        ),
        _SEARCH._replace(client="c.search.memories(q='tea', container_tag='c1', limit=5, search_mode='hybrid')"),
        Call("c.profile(container_tag='c1')", lambda wire: wire.profile("c1", 10)),
        Call("c.memories.forget(container_tag='c1', id='m1')", lambda wire: wire.forget_memory("c1", "m1")),
        Call("c.documents.delete('turn-1')", lambda wire: wire.delete_documents("c1", ["turn-1"])),
        Call("c.documents.delete_bulk(container_tags=['c1'])", lambda wire: wire.delete_container("c1")),
        Call("c.documents.list(limit=1)", lambda wire: wire.check_access()),
    )),
    "v5": ("supermemory==5.0.1", NamespaceClient, (
        Call(
            "c.add('c1', content='User: Hello.', id='turn-1', metadata={'type': 'conversation_turn'},"
            f" date={_DATE!r}, supporting_context='Ana is a vet.')",
            lambda wire: wire.add("c1", _DOCUMENT, may_be_stored=False),
        ),
        _SEARCH._replace(client="c.search('c1', query='tea', limit=5, search_mode='hybrid')"),
        Call("c.profile('c1')", lambda wire: wire.profile("c1", 10)),
        Call("c.memories.forget('c1', ids=['m1'])", lambda wire: wire.forget_memory("c1", "m1")),
        Call("c.documents.delete('c1', ids=['turn-1'])", lambda wire: wire.delete_documents("c1", ["turn-1"])),
        Call("c.namespaces.delete('c1')", lambda wire: wire.delete_container("c1")),
        Call("c.namespaces.list(limit=1)", lambda wire: wire.check_access()),
        Call(
            "(c.documents.get('c1', 'turn-1'), c.documents.update('c1', 'turn-1', content='User: Hello.',"
            f" metadata={{'type': 'conversation_turn'}}, date={_DATE!r}, supporting_context='Ana is a vet.'))",
            lambda wire: wire.replace_conversation("c1", _DOCUMENT, ()),
        ),
    )),
}  # fmt: skip


class _Recorder(BaseHTTPRequestHandler):
    """Answers everything, and remembers method, path, body and key."""

    requests: ClassVar[list[tuple[str, str, Any, str]]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = json.loads(body) if body else None
        self.requests.append((self.command, self.path, found, self.headers.get("Authorization", "")))
        answer = json.dumps(_ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PATCH = do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _requests_of(action: Callable[[], Any]) -> list[tuple[str, str, Any, str]]:
    _Recorder.requests.clear()
    action()
    return list(_Recorder.requests)


def main() -> int:
    different = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), _Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        for version, (package, wire_class, calls) in _CALLS.items():
            python = install_python_packages(_CACHE / version, [package])
            wire = wire_class(RemoteClient("supermemory", url, headers={"Authorization": f"Bearer {_KEY}"}))
            for call in calls:
                program = f"from supermemory import Supermemory\nc = Supermemory(api_key={_KEY!r}, base_url={url!r})\n"
                command = [str(python), "-c", program + call.client]
                theirs = _requests_of(lambda command=command: subprocess.run(command, check=True, timeout=120))  # type: ignore[misc]
                ours = _requests_of(lambda call=call, wire=wire: call.ours(wire))  # type: ignore[misc]
                same = ours == theirs
                different += not same
                print(f"{'same' if same else 'DIFFERENT'}  {package}  {call.client[:60]}")
                if not same:
                    print(f"  client  {theirs}\n  ours    {ours}")
        server.shutdown()
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
