"""Codes and tokens are valid once, also when two requests use one at the same time, on both engines."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.home.access.oauth_grants import ACCESS_SECONDS, REFRESH_SECONDS, GrantStore, InvalidGrant
from memoranda.home.access.service_database import ServiceDatabase, load_or_create_secret

REDIRECT, RESOURCE = "https://app.example/callback", "https://memory.example/mcp"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceDatabase]:
    record = request.getfixturevalue("postgres_url") if request.param == "server" else ""
    opened = ServiceDatabase(tmp_path, record)
    yield opened
    opened.close()


@pytest.fixture
def grants(database: ServiceDatabase, clock: Clock) -> GrantStore:
    return GrantStore(database.open, clock=clock)


def _code(grants: GrantStore) -> tuple[str, str]:
    client = grants.register("A program", (REDIRECT,))
    assert grants.find_client(client.id) == client
    code = grants.approve(
        client, "key1", scopes=("read",), resource=RESOURCE, redirect_uri=REDIRECT, challenge="the challenge"
    )
    return client.id, code


def _exchange(grants: GrantStore, client_id: str, code: str, challenge: str = "the challenge") -> str:
    return grants.exchange_code(code, client_id=client_id, redirect_uri=REDIRECT, challenge=challenge).refresh


def test_a_code_gives_tokens_with_what_was_approved(grants: GrantStore, clock: Clock) -> None:
    """For an hour."""
    client_id, code = _code(grants)
    pair = grants.exchange_code(code, client_id=client_id, redirect_uri=REDIRECT, challenge="the challenge")
    found = grants.find_access(pair.access)
    assert found is not None
    assert (found.client_id, found.key_id, found.scopes, found.resource) == (client_id, "key1", ("read",), RESOURCE)
    assert grants.find_access(pair.refresh) is None
    clock.now += ACCESS_SECONDS
    assert grants.find_access(pair.access) is None


@pytest.mark.parametrize("client_id", [None, "another"])
def test_a_wrong_attempt_uses_the_code_up_only_for_its_own_client(grants: GrantStore, client_id: str | None) -> None:
    """A stranger cannot spoil it by guessing, and the client has one attempt."""
    own, code = _code(grants)
    with pytest.raises(InvalidGrant):
        _exchange(grants, client_id or own, code, "a wrong challenge")
    if client_id is None:
        with pytest.raises(InvalidGrant):
            _exchange(grants, own, code)
    else:
        assert _exchange(grants, own, code)


def test_of_simultaneous_uses_one_wins_at_most(grants: GrantStore) -> None:
    """And the grant ends, because a code was used twice."""
    client_id, code = _code(grants)
    refreshes: list[str] = []
    refused: list[Exception] = []

    def use() -> None:
        try:
            refreshes.append(_exchange(grants, client_id, code))
        except InvalidGrant as error:
            refused.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refreshes), len(refused)) == (1, 3)
    with pytest.raises(InvalidGrant):
        grants.refresh(refreshes[0], client_id=client_id)


def test_expired_rows_are_deleted(grants: GrantStore, database: ServiceDatabase, clock: Clock) -> None:
    """A client that was approved stays, because it stores its id; one that was not is forgotten after a day."""
    approved, code = _code(grants)
    _exchange(grants, approved, code)
    waiting = grants.register("Another program", (REDIRECT,))
    clock.now += REFRESH_SECONDS + 100
    _code(grants)
    assert grants.find_client(waiting.id) is None and grants.find_client(approved) is not None
    with database.open().reading() as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("oauth_tokens", "oauth_grants")
        ]
    assert counts == [1, 1]


@pytest.mark.slow
def test_a_flood_of_registrations_stops_no_other_client(
    grants: GrantStore, database: ServiceDatabase, clock: Clock
) -> None:
    """The oldest clients without an approval make room; approved ones stay."""
    approved, _ = _code(grants)
    for _ in range(1_005):
        clock.now += 1
        newest = grants.register("A flood", (REDIRECT,))
    assert grants.find_client(newest.id) is not None and grants.find_client(approved) is not None
    with database.open().reading() as connection:
        assert connection.execute("SELECT count(*) FROM oauth_clients").fetchone()[0] == 1_001


def test_all_processes_share_one_secret(database: ServiceDatabase, tmp_path: Path) -> None:
    """Once there is a database; before that, each has its own and writes nothing."""
    if not database.exists():
        assert load_or_create_secret(database) != load_or_create_secret(database)
        assert list(tmp_path.iterdir()) == []
        database.open()
    assert load_or_create_secret(database) == load_or_create_secret(database)
