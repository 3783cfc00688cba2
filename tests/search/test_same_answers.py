"""A search gives the same answer, to the last character, wherever the record is."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engineering import load_sets
from benchmarks.recall import fill_store
from memoranda.home.session_db import SessionDB
from memoranda.search.tool import SessionSearchTool
from tests.storage.postgres.servers import Server


def different_answers(server: Server, data: dict[str, Any], store: dict[str, Any], limit: int) -> Iterator[bool]:
    """For each question about a store, whether the two answers differ."""
    directory = Path(tempfile.mkdtemp(prefix="memoranda-recall-"))
    questions = [query["q"] for query in (*data["queries"], *data["no_answer"]) if query["store"] == store["id"]]
    try:
        with (
            server.schema() as url,
            SessionDB(directory / "state.db") as in_file,
            SessionDB(url, index_directory=directory / "node") as on_server,
        ):
            for sessions in (in_file, on_server):
                fill_store(sessions, data["name"], store)
                sessions.index.catch_up()
            for number, question in enumerate(questions[:limit]):
                if number == len(questions[:limit]) // 2:
                    for file in on_server.index.files:
                        file.unlink()
                    # While a node has no index, it searches directly and says so.
                    on_server.index.catch_up()
                answers = [
                    SessionSearchTool(lambda: sessions).call({"query": question, "limit": 10})  # noqa: B023
                    for sessions in (in_file, on_server)
                ]
                yield answers[0] != answers[1]
    finally:
        shutil.rmtree(directory)


@pytest.mark.slow
def test_a_file_and_a_server_give_the_same_answers(postgres_server: Server) -> None:
    """Also after the index of the server's node was deleted in between."""
    data = next(data for data in load_sets() if data["name"] == "engineering")
    compared = [
        differs for store in data["stores"] for differs in different_answers(postgres_server, data, store, limit=12)
    ]
    assert len(compared) >= 12
    assert not any(compared)
