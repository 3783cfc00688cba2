"""Forgetting a user covers the tables beside the record: keys, audit log, spending, reviews; files and servers."""

from contextlib import closing
from pathlib import Path

import memoranda
from memoranda.agent.review.background import ReviewSchedule
from memoranda.agent.review.report import ReviewReport
from memoranda.agent.review.settings import ReviewSettings
from memoranda.home.access.keys import ApiKeys
from memoranda.home.access.request_log import AuditLog
from memoranda.home.access.schema import forgotten_name
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.models.spending.ledger import Ledger
from tests.models.spending.models import QUESTION, Fixed


def _fill(home: Path, url: str) -> None:
    """Rows of ben, of a ben in another tenant, and of ada."""
    home.mkdir()
    if url:
        (home / "config.yaml").write_text(f"store:\n  url: {url}\n")
    with closing(ServiceDatabase(home, url)) as database:
        keys, log = ApiKeys(database), AuditLog(database)
        for name, tenant in (("ben", "default"), ("ben", "acme"), ("ada", "default")):
            key, _ = keys.create({"read"}, tenant=tenant, user=name)
            stored = name if tenant == "default" else f"{tenant}/{name}"
            log.add(key_id=key.id, tenant=tenant, user=stored, action="memory.add", subject="memory change 1",
                    request_id="r")  # fmt: skip
    with closing(Ledger(home, server_url=url)) as ledger:
        for user in ("ben", "ada"):
            ledger.metered(Fixed(), "chat", user_id=user, session_id=f"s-{user}").reply("", QUESTION)
    with closing(ReviewSchedule(home, ReviewSettings(nudge_interval=1), server_url=url)) as schedule:
        for user in ("ben", "ada"):
            schedule.record_turn(user, f"s-{user}", used=(), offered=("memory",))
            (due,) = schedule.open_reviews(user)
            schedule.end(due, ReviewReport(f"s-{user}"))


def test_rows_of_a_forgotten_user_are_removed_and_others_stay(tmp_path: Path, server_url: str) -> None:
    """The keys go, the audit log keeps what happened under a pseudonym, and the ledger keeps what was paid."""
    home = tmp_path / "home"
    _fill(home, server_url)
    with memoranda.open(home) as memory:
        report = memory.forget(user="ben")
    assert report.complete, report
    with closing(ServiceDatabase(home, server_url)) as database:
        assert {(key.tenant, key.user) for key in ApiKeys(database).list_keys()} == {
            ("acme", "ben"),
            ("default", "ada"),
        }
        entries = {entry.user: entry.subject for entry in AuditLog(database).read()}
        assert entries == {"ada": "memory change 1", "acme/ben": "memory change 1", forgotten_name("ben"): ""}
    with closing(Ledger(home, server_url=server_url)) as ledger:
        assert (ledger.total(user="ben").calls, ledger.total().calls) == (0, 2)
        assert {total.name for total in ledger.totals("session")} == {"", "s-ada"}
    with closing(ReviewSchedule(home, server_url=server_url)) as schedule:
        assert [review.user for review in schedule.history()] == ["ada"]


def test_a_text_in_a_label_is_replaced_on_a_server(tmp_path: Path, postgres_url: str) -> None:
    """Labels such as the name of a key are searched and changed like the rows of files."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f"store:\n  url: {postgres_url}\n")
    with closing(ServiceDatabase(home, postgres_url)) as database:
        ApiKeys(database).create({"read"}, name="laptop of Zerlina Quill")
    with memoranda.open(home) as memory:
        report = memory.forget(text="Zerlina Quill")
        assert memory.forget(text="Zerlina Quill", dry_run=True).found == ()
    assert [place.where for place in report.found] == ["api_keys"]
    assert report.complete
