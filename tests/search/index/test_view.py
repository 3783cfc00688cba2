"""The documents of sessions, however they are spread over the index."""

import random
import sqlite3
from contextlib import closing

import pytest

from memoranda.search.index.generations import create
from memoranda.search.index.view import IndexView

pytestmark = pytest.mark.slow


def test_the_documents_of_sessions_are_found_wherever_they_are() -> None:
    """In one piece, with the title apart from the messages, in two pieces, or mixed with those of other sessions."""
    generator = random.Random(1)
    owners = [1] * 5 + [2, 3, 4] + [2] * 6 + [3] * 2 + [5] * 4 + [3] * 3 + [4] + [6, 7] * 5
    owners += generator.choices(range(8, 100), k=600)
    with closing(sqlite3.connect(":memory:")) as connection:
        create(connection, "store")
        connection.executemany(
            "INSERT INTO docs VALUES (?, 1, ?, 0, 0, 1, 0.0, 0)", [(doc, owner) for doc, owner in enumerate(owners)]
        )
        view = IndexView(connection)
        for some in ([1], [2], [3], [4], [1, 2, 3, 4, 5], [6], [6, 7], list(range(100)), [1_000], []):
            expected = [doc for doc, owner in enumerate(owners) if owner in some]
            assert view.docs_of_sessions(some) == expected
