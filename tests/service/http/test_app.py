"""The table of paths: exact, with variable parts, and as fast with many paths as with few."""

import pytest

from memoranda.service.http.app import PathTable

_PATHS = (
    "/",
    "/v1/sessions",
    "/v1/sessions/{id}",
    "/v1/sessions/{id}/messages",
    "/v1/sessions/latest",
    "/v1/{a}/{b}/x",
)


@pytest.fixture(scope="module")
def table() -> PathTable[str]:
    """Some paths, each with itself as what belongs to it."""
    paths: PathTable[str] = PathTable()
    for path in _PATHS:
        paths.add(path, path)
    return paths


def test_a_path_finds_what_belongs_to_it(table: PathTable[str]) -> None:
    """A literal part precedes a variable one, a variable part is never empty, and slashes count."""
    for path, expected in [
        ("/", ("/", {})),
        ("/v1/sessions", ("/v1/sessions", {})),
        ("/v1/sessions/a%2Fb", ("/v1/sessions/{id}", {"id": "a%2Fb"})),
        ("/v1/sessions/latest", ("/v1/sessions/latest", {})),
        ("/v1/sessions/latest/messages", ("/v1/sessions/{id}/messages", {"id": "latest"})),
        ("/v1/sessions/latest/x", ("/v1/{a}/{b}/x", {"a": "sessions", "b": "latest"})),
        ("/v1/sessions/", None),
        ("/v1/sessions//messages", None),
        ("//v1/sessions", None),
        ("", None),
        ("/v1", None),
        ("/v1/sessions/a/b/c/d", None),
    ]:
        assert table.find(path) == expected


def test_the_first_of_two_equal_paths_stays() -> None:
    """As with routes that are tried in their order."""
    paths: PathTable[int] = PathTable()
    paths.add("/a/{x}", 1)
    paths.add("/a/{y}", 2)
    assert paths.find("/a/b") == (1, {"x": "b"})


def test_a_hostile_path_is_refused_quickly(table: PathTable[str]) -> None:
    """Although every part could be literal or variable."""
    deep: PathTable[int] = PathTable()
    deep.add("/a" * 20 + "/{x}" * 20, 1)
    assert deep.find("/a" * 100_000) is None
    assert table.find("/v1/" + "x/" * 100_000) is None
