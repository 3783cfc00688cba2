"""The doctor finds damage in what a server has beside the record, and says what to do about it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.storage.lazy_database import open_server_engine
from memoranda.support.health_issues import HealthIssue
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from memoranda.upkeep.home_tables import component_schemas


@pytest.fixture
def home(tmp_path: Path, postgres_url: str) -> Iterator[Home]:
    """A home whose server has a memory of the owner and of a user."""
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    (root / "config.yaml").write_text(f"store:\n  url: {postgres_url}\n")
    os.chmod(root / "config.yaml", 0o600)
    for user in (None, "ana"):
        with memoranda.open(root, user=user) as memory:
            memory.remember("The deploy key is in the vault.")
            memory.remember("Tests run with xdist.")
    for schema in component_schemas():
        open_server_engine(postgres_url, schema).close()
    yield Home.at(root)


def _change(url: str, *statements: str) -> None:
    engine = open_server_engine(url, component_schemas()[0])
    with engine.acting_for(None, everyone=True).writing() as connection:
        for statement in statements:
            connection.execute(statement)
    engine.close()


def _issues(home: Home, *, deep: bool = False) -> list[HealthIssue]:
    # The server of the tests does not wait for its disk.
    found = examine(home, (lambda *_: None) if deep else None)
    return [issue for issue in found if "fsync" not in issue.problem]


def test_a_healthy_server_has_no_issues(home: Home) -> None:
    """Neither a short check nor a deep one reports anything."""
    assert _issues(home, deep=True) == []


_FACT = (
    "INSERT INTO shared_facts (user_id, fact_id, revision, content, content_key, category, trust_score,"
    " created_at, updated_at, given_names)"
    " VALUES ('ana', 1, 7, 'a fact', 'a fact', 'general', 1, 0, 0, '[not json')"
)
_PARKED_JOB = (
    "INSERT INTO jobs (key, provider, user_id, kind, session_id, first_message, last_message, created, state)"
    " VALUES ('k2', 'mem0', 'ana', 'turn', 's', 1, 2, 0, 'parked')"
)
_UNREADABLE_NOTIFICATION = (
    "INSERT INTO notifications (key, provider, user_id, kind, session_id, payload, created, after_message, owner,"
    " checksum) VALUES ('k1', 'mem0', 'ana', 'turn', 's', '{oops', 0, 0, '', 0)"
)
_UNREADABLE_ITEM = (
    "INSERT INTO import_items (source, user_id, node, file, what, size, changed, sessions)"
    " VALUES ('jsonl', 'ana', 'n', 'f', '', 1, 1, '[oops')"
)
_INCOMPLETE_CHECKPOINT = (
    "INSERT INTO checkpoints (user_id, thread_id, namespace, checkpoint_id, channels, state_kind, state, metadata_kind,"
    " metadata, created_at, checksum)"
    " VALUES ('ana', 't', '', 'c', '{\"a\": \"missing\"}', 'j', ''::bytea, 'j', ''::bytea, 0, 0)"
)


@pytest.mark.parametrize(
    ("damage", "problem", "remedy"),
    [
        (
            "DELETE FROM curated_memory WHERE user_id = 'ana'",
            "was deleted outside",
            "memory undo --outside memory --user ana",
        ),
        (
            "UPDATE curated_memory SET content = 'changed by hand' WHERE user_id = ''",
            "was changed outside",
            "memory diff",
        ),
        (
            "UPDATE curated_journal SET line = '{oops' WHERE user_id = 'ana'",
            "has unreadable or changed lines (1, 2)",
            "purge",
        ),
        (
            "UPDATE curated_memory SET content = repeat('many words ', 2000) WHERE user_id = 'ana'",
            "longer than the whole file",
            "memory edit memory --user ana",
        ),
    ],
)
def test_damaged_memories_are_reported(home: Home, postgres_url: str, damage: str, problem: str, remedy: str) -> None:
    """Entries are compared with journal and limit, for every user."""
    _change(postgres_url, damage)
    found = [issue for issue in _issues(home) if problem in issue.problem]
    assert len(found) == 1, [issue.problem for issue in _issues(home)]
    assert remedy in found[0].remedy


def test_damaged_rows_are_reported(home: Home, postgres_url: str) -> None:
    """Each finding about deliveries, facts, checkpoints, reviews and imports says what is wrong and what to do."""
    _change(
        postgres_url,
        _FACT,
        _UNREADABLE_NOTIFICATION,
        _PARKED_JOB,
        "INSERT INTO outbox_positions (provider, user_id, position) VALUES ('mem0', 'ana', 'x')",
        _INCOMPLETE_CHECKPOINT,
        "INSERT INTO reviews (created, user_id, session_id, state) VALUES (0, 'ana', 's', 'lost')",
        "INSERT INTO reviews (created, user_id, session_id) VALUES (0, 'ana', 's')",
        "INSERT INTO import_parts (import_id, session_id, first_message, last_message, user_id)"
        " VALUES ('x', 's', 1, 2, 'ana')",
        "INSERT INTO imports (id, user_id, began, after_message, sources) VALUES ('y', 'ana', 0, 0, '[]')",
        _UNREADABLE_ITEM,
    )
    found = _issues(home)
    for problem, remedy in (
        ("1 notifications for external memories that cannot be read", "move them"),
        ("1 parked deliveries to mem0", "retry"),
        ("unreadable position of mem0 for ana", "delete that row"),
        ("1 facts of 1 users that nodes overlook", "raise that number"),
        ("names of entities cannot be read", "given_names"),
        ("1 checkpoints of which a value is missing", "backup of the server"),
        ("1 reviews in an unknown state", "'due'"),
        ("1 due reviews of sessions that are not in the record", "nothing to do"),
        ("1 parts of imports without their import", "restore the table"),
        ("1 imports without an end", "nothing to do"),
        ("1 imported files with an unreadable list", "read again"),
    ):
        matching = [issue for issue in found if problem in issue.problem]
        assert [remedy in issue.remedy for issue in matching] == [True], (problem, [each.problem for each in found])


def test_a_deep_check_replays_the_history(home: Home, postgres_url: str) -> None:
    """A journal that does not lead to the stored entries is reported, which a short check does not notice."""
    _change(postgres_url, "UPDATE curated_journal SET line = replace(line, 'vault', 'attic') WHERE user_id = 'ana'")
    assert [issue for issue in _issues(home) if "history" in issue.problem] == []
    assert any("history of MEMORY.md that" in issue.problem for issue in _issues(home, deep=True))


def test_repairs_work_on_a_server(home: Home, postgres_url: str) -> None:
    """After the repairs nothing that could be repaired is reported any more, and the jobs are in a file."""
    _change(
        postgres_url,
        _FACT.replace("[not json", "[]"),
        _UNREADABLE_NOTIFICATION,
        _UNREADABLE_ITEM,
    )
    repairs = [issue.repair for issue in _issues(home) if issue.repair is not None]
    assert len(repairs) == 4
    for repair in repairs:
        repair()
    assert [issue.problem for issue in _issues(home) if issue.repair is not None] == []
    assert "oops" in next(home.root.glob("outbox.unreadable-*.jsonl")).read_text()
