"""A search gives the same answer, to the last character, wherever the record is."""

import pytest

from benchmarks.engineering import load_sets
from benchmarks.server_recall import different_answers
from tests.postgres import Server


@pytest.mark.slow
def test_a_file_and_a_server_give_the_same_answers(postgres_server: Server) -> None:
    """Also after the index of the server's node was deleted in between."""
    data = next(data for data in load_sets() if data["name"] == "engineering")
    compared = [
        differs for store in data["stores"] for differs in different_answers(postgres_server, data, store, limit=12)
    ]
    assert len(compared) >= 12
    assert not any(compared)
