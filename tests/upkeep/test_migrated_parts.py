"""Spending, reviews, keys, deliveries, facts and what vendors received move to a server and back unchanged."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.agent.review.background import ReviewSchedule
from memoranda.agent.review.settings import ReviewSettings
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.schema import outbox_database, read_position, write_position
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentRecord
from memoranda.home.access.keys import ApiKeys
from memoranda.home.access.request_log import AuditLog
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.notifications import FeedHeads
from memoranda.models.spending.ledger import Ledger
from memoranda.storage.position import Position
from memoranda.support.home import Home
from memoranda.upkeep.migration.tables import copy_parts_to_files, copy_parts_to_server
from tests.models.spending.models import QUESTION, Fixed

_TABLES = (
    "calls", "counters", "reviews", "api_keys", "audit_log", "jobs", "sent", "shared_facts", "fact_revisions",
)  # fmt: skip


def _fill(home: Path) -> None:
    home.mkdir()
    with closing(SessionDB(home / "state.db")) as record:
        record.create_session("s1", "cli")
        for number in range(3):
            record.append_message("s1", "user", f"message {number}")
    with closing(Ledger(home)) as ledger:
        ledger.metered(Fixed(), "chat", user_id="ben").reply("", QUESTION)
    with closing(ReviewSchedule(home, ReviewSettings(nudge_interval=1))) as schedule:
        schedule.record_turn("ben", "s1", used=(), offered=("memory",))
    with closing(ServiceDatabase(home)) as database:
        key, _ = ApiKeys(database).create({"read"}, user="ben")
        AuditLog(database).add(key_id=key.id, tenant="default", user="ben", action="x", subject="", request_id="r")
    with closing(Outbox(home)) as outbox:
        outbox.put("p", "turn", "s1", {"text": "é\ud800\x00"}, {}, scope="ben", key="k")
    _set_position(home, Position(0, 2))
    with closing(SentRecord(home, "mem0", VendorScope(home, user_id="ben"))) as sent:
        sent.add("turn", "k0", "remote", "s1")
    with closing(FactStore(home, "ben")) as facts:
        facts.add("Ben has a boat.", entities=["Boat"], tags=["sea"])
        facts.add("Ben lives in Oslo.")
        facts.remove(1)


def _set_position(home: Path, position: Position) -> None:
    with closing(outbox_database(home)) as database, database.open().writing() as connection:
        write_position(connection, "p", "ben", FeedHeads(position))


def _position(home: Path, server_url: str = "") -> Position:
    with closing(outbox_database(home, server_url)) as database, database.open().reading() as connection:
        return read_position(connection, "p", "ben").messages


def _rows(home: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / "home.db")) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}


def test_the_parts_are_the_same_after_moving_there_and_back(tmp_path: Path, postgres_url: str) -> None:
    """Row by row; repeating an interrupted copy changes nothing, and the outbox continues where it was."""
    home, back = Home.at(tmp_path / "home"), Home.at(tmp_path / "back")
    _fill(home.root)
    before = _rows(home.root)
    with closing(SessionDB(postgres_url, index_directory=tmp_path)) as record:
        record.create_session("s1", "cli")
        for number in range(3):
            record.append_message("s1", "user", f"message {number}")
    for _ in range(2):
        counts = copy_parts_to_server(home, postgres_url, lambda *_: None)
    expected = {name: len(rows) for name, rows in before.items()} | {"outbox_positions": 1}
    assert {name: count for name, count in counts.items() if count} == expected
    with closing(Outbox(tmp_path, server_url=postgres_url)) as outbox:
        position = _position(tmp_path, postgres_url)
        assert position.row == 2 and position.transaction > 0
        assert outbox.put("p", "turn", "s1", {}, {}, scope="eve", key="other") == "other"
        outbox.drop("p", "eve")
    back.root.mkdir()
    copy_parts_to_files(postgres_url, back, lambda *_: None)
    assert _rows(back.root) == before
    assert _position(back.root) == Position(0, 2)
