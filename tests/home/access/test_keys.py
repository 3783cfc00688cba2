"""API keys, the audit log and stored answers, in a file of the home and on a PostgreSQL server."""

import time
from pathlib import Path

import pytest

from memoranda.home.access.keys import ApiKeys
from memoranda.home.access.request_log import KEEP_SECONDS, Answers, AuditLog, StoredAnswer
from memoranda.home.access.service_database import ServiceDatabase


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> ServiceDatabase:
    """The database of the service on either engine."""
    record = request.getfixturevalue("postgres_url") if request.param == "postgresql" else tmp_path / "state.db"
    opened = ServiceDatabase(tmp_path, record)
    request.addfinalizer(opened.close)
    return opened


def test_a_key_is_found_by_its_secret_until_it_is_revoked(database: ServiceDatabase) -> None:
    """And notes when it was used."""
    keys = ApiKeys(database)
    assert keys.list_keys() == []
    key, token = keys.create(["read", "curate"], name="n", tenant="acme", user="ana")
    found = keys.find(token)
    assert found is not None and (found.id, found.tenant, found.user) == (key.id, "acme", "ana")
    assert found.scopes == {"read", "curate"}
    assert keys.find(token[:-1] + ("a" if token[-1] != "a" else "b")) is None
    assert keys.list_keys()[0].last_used_at is not None
    assert (keys.revoke(key.id), keys.revoke(key.id), keys.find(token)) == (True, False, None)


def test_a_key_that_has_expired_is_not_found(database: ServiceDatabase) -> None:
    """From the second in which it expires."""
    keys = ApiKeys(database)
    _, token = keys.create(["read"], expires_at=time.time() - 1)
    assert keys.find(token) is None


def test_the_audit_log_is_read_by_tenant_and_user(database: ServiceDatabase) -> None:
    """The newest first, page by page."""
    log = AuditLog(database)
    for number, (tenant, user) in enumerate([("default", None), ("acme", "acme/ana"), ("acme", "acme/bo")]):
        log.add(key_id="k", tenant=tenant, user=user, action="a", subject=str(number), request_id="r")
    assert [entry.subject for entry in log.read()] == ["2", "1", "0"]
    assert [entry.subject for entry in log.read(tenant="acme", limit=1)] == ["2"]
    assert [entry.subject for entry in log.read(tenant="acme", before=log.read()[0].id)] == ["1"]
    assert [entry.subject for entry in log.read(user="acme/ana")] == ["1"]


def test_the_first_answer_of_a_token_counts(database: ServiceDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a day."""
    answers = Answers(database)
    answers.store("t", StoredAnswer("f1", 201, "{}"))
    answers.store("t", StoredAnswer("f2", 201, "[]"))
    assert answers.find("t") == StoredAnswer("f1", 201, "{}")
    later = time.time() + KEEP_SECONDS + 1
    monkeypatch.setattr("memoranda.home.access.request_log.time.time", lambda: later)
    assert answers.find("t") is None
    answers.store("t", StoredAnswer("f2", 201, "[]"))
    assert answers.find("t") == StoredAnswer("f2", 201, "[]")
