"""The smallest service that stores messages on PostgreSQL: the peer of `service_load.py minimal`.

    python benchmarks/minimal_service.py CONNINFO PORT

Starlette and psycopg, one table of sessions and one of messages; no users, keys, redaction, checksums or index.
"""

import sys
from typing import Any

import uvicorn
from psycopg_pool import ConnectionPool
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS minimal",
    "CREATE TABLE minimal.sessions (id text PRIMARY KEY, user_id text, message_count int DEFAULT 0)",
    "CREATE TABLE minimal.messages (id bigserial PRIMARY KEY, session_id text, role text, content text)",
)


class Store:
    """Sessions and messages, each append in one transaction."""

    def __init__(self, conninfo: str) -> None:
        self._pool = ConnectionPool(conninfo, min_size=0, max_size=10, open=True, kwargs={"autocommit": True})
        with self._pool.connection() as connection:
            for statement in _TABLES:
                connection.execute(statement)

    def create(self, session_id: str, user: str | None) -> None:
        with self._pool.connection() as connection:
            connection.execute("INSERT INTO minimal.sessions (id, user_id) VALUES (%s, %s)", (session_id, user))

    def append(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(
                "UPDATE minimal.sessions SET message_count = message_count + %s WHERE id = %s",
                (len(messages), session_id),
            )
            for message in messages:
                connection.execute(
                    "INSERT INTO minimal.messages (session_id, role, content) VALUES (%s, %s, %s)",
                    (session_id, message["role"], message["content"]),
                )


def main() -> None:
    store = Store(sys.argv[1])

    async def create(request: Request) -> JSONResponse:
        body = await request.json()
        await run_in_threadpool(store.create, body["id"], request.query_params.get("user"))
        return JSONResponse({"id": body["id"]})

    async def append(request: Request) -> JSONResponse:
        body = await request.json()
        await run_in_threadpool(store.append, request.path_params["session"], body["messages"])
        return JSONResponse({"success": True})

    routes = [
        Route("/v1/sessions", create, methods=["POST"]),
        Route("/v1/sessions/{session}/messages", append, methods=["POST"]),
    ]
    uvicorn.run(
        Starlette(routes=routes), port=int(sys.argv[2]), log_level="error", access_log=False, timeout_keep_alive=60
    )


if __name__ == "__main__":
    main()
