"""The record of what a vendor has received."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError, StorageError
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentRecord, describe_items
from memoranda.storage.home_database import FILE_NAME
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def record(tmp_path: Path) -> Iterator[SentRecord]:
    record = SentRecord(tmp_path, "acme", VendorScope(tmp_path))
    yield record
    record.close()


@pytest.fixture
def stored(tmp_path: Path, server_url: str) -> Iterator[SentRecord]:
    """The same in a file and on a server."""
    record = SentRecord(tmp_path, "acme", VendorScope(tmp_path, server_url=server_url))
    yield record
    record.close()


def test_reading_creates_no_file(record: SentRecord, tmp_path: Path) -> None:
    """Nothing is written before something was sent."""
    assert (record.find("turn", "k1"), record.items(), record.scopes()) == (None, [], [])
    assert list(tmp_path.iterdir()) == []


def test_what_was_sent_is_found_until_it_is_deleted(stored: SentRecord) -> None:
    """By kind and local id; a later remote id replaces an earlier one."""
    record = stored
    record.add("turn", "k1", "r1", "s1")
    record.add("turn", "k2", session_id="s2")
    record.add("session", "s1", "u1")
    record.add("session", "s1", "u2")
    assert (record.find("turn", "k1"), record.find("turn", "k2"), record.find("session", "s1")) == ("r1", "", "u2")
    assert [item.local_id for item in record.items()] == ["k1", "k2", "s1"]
    assert [item.local_id for item in record.of_sessions(["s1"])] == ["k1"]
    record.remove(record.items("turn")[0])
    assert record.find("turn", "k1") is None


def test_users_and_profiles_have_separate_records(record: SentRecord, tmp_path: Path) -> None:
    """In one file, and none sees another's rows."""
    record.add("session", "s1", "owner")
    for scope in (VendorScope(tmp_path, user_id="ana"), VendorScope(tmp_path, "work")):
        other = SentRecord(tmp_path, "acme", scope)
        assert other.find("session", "s1") is None
        other.add("session", "s1", scope.peer())
        other.close()
    assert record.find("session", "s1") == "owner"
    assert record.scopes() == ["default", "default__ana", "work"]


def test_users_nodes_and_providers_share_what_they_should(stored: SentRecord, tmp_path: Path, server_url: str) -> None:
    """Another object of the same user finds what was sent; another user and another provider do not."""
    stored.add("turn", "k1", "r1", "s1")
    for provider, user, found in (("acme", "", "r1"), ("acme", "ana", None), ("other", "", None)):
        scope = VendorScope(tmp_path, user_id=user, server_url=server_url)
        with closing(SentRecord(tmp_path, provider, scope)) as other:
            assert other.find("turn", "k1") == found
            other.add("turn", "k1", f"{provider} {user}", "s1")
    assert stored.find("turn", "k1") == "acme "
    assert len(stored.items()) == 1


def test_two_writers_of_one_delivery_leave_one_row(stored: SentRecord, tmp_path: Path, server_url: str) -> None:
    """A delivery that two nodes record at the same time is recorded once."""
    others = [SentRecord(tmp_path, "acme", VendorScope(tmp_path, server_url=server_url)) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda record: [record.add("turn", f"k{n}", "r", "s") for n in range(20)], others))
    for record in others:
        record.close()
    assert len(stored.items()) == 20


def test_items_are_described_in_words(record: SentRecord) -> None:
    """A person reads how much of what there is."""
    for kind, local_id in (("turn", "1"), ("turn", "2"), ("memory_write", "3"), ("tool", "4"), ("tool work", "5")):
        record.add(kind, local_id)
    assert describe_items(record.items()) == ["2 turns", "1 memory write", "2 tool memories"]
    assert describe_items([]) == []


def test_a_closed_record_refuses_work(record: SentRecord) -> None:
    """A delivery fails then, and is repeated."""
    record.add("turn", "k1")
    record.close()
    with pytest.raises(StorageError, match="has been closed"):
        record.add("turn", "k2")


def test_the_doctor_repairs_a_damaged_record(tmp_path: Path) -> None:
    """What is readable is saved, and the damaged file stays beside it."""
    terminal = Terminal(tmp_path / "home")
    home = tmp_path / "home"
    home.mkdir()
    record = SentRecord(home, "acme", VendorScope(home))
    for number in range(600):
        record.add("turn", f"a-long-key-of-a-turn-{number:05}", session_id="s1")
    record.close()
    path = home / FILE_NAME
    content = bytearray(path.read_bytes())
    content[4096 * 6 : 4096 * 7] = b"\xff" * 4096
    path.write_bytes(content)
    assert terminal.run("doctor").exit_code != 0
    terminal.run("doctor", "--fix")
    repaired = SentRecord(home, "acme", VendorScope(home))
    try:
        assert len(repaired.items()) > 300
    except CorruptStoreError as error:
        pytest.fail(str(error))
    finally:
        repaired.close()
    assert list(home.glob(f"{FILE_NAME}.damaged-*"))
