"""Calling the search tool on the conversations of a test."""

from collections.abc import Callable
from typing import Any

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.search.tool import SessionSearchTool

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(db: SessionDB) -> Call:
    """Call the tool with keyword arguments and expect success."""

    def call_tool(**arguments: Any) -> dict[str, Any]:
        answer = SessionSearchTool(lambda: db).call(arguments)
        assert answer["success"], answer
        return answer

    return call_tool
