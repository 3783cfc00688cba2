"""Where homes, profiles and users live."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda.errors import ForeignHomeError, HomeError
from memoranda.support.home import Home, decode_user_id, encode_user_id

pytestmark = pytest.mark.slow

_ANY_TEXT = st.text(st.characters(codec=None), min_size=1)


@given(_ANY_TEXT)
def test_no_user_id_can_leave_the_home(user: str) -> None:
    """Whatever an id holds, its directory lies directly below memories/users."""
    home = Home(Path("/home/x"))
    directory = home.memories(user)
    assert directory.resolve().parent == Path("/home/x/memories/users")


@given(_ANY_TEXT, _ANY_TEXT)
def test_different_user_ids_get_different_directories(one: str, other: str) -> None:
    """Two ids share a directory only when they are the same id, also where case does not count."""
    same = encode_user_id(one).lower() == encode_user_id(other).lower()
    assert same == (one == other)


@given(_ANY_TEXT)
def test_a_directory_name_leads_back_to_its_user(user: str) -> None:
    """Unless the id was too long to be written out."""
    name = encode_user_id(user)
    assert decode_user_id(name) == (user if name.startswith("u-") else None)


@pytest.mark.parametrize(
    ("one", "other"), [("Ana", "ana"), ("a.b", "a=2eb"), ("é", "e\u0301"), ("CON", "con"), ("x" * 500, "x" * 501)]
)
def test_ids_that_look_alike_are_kept_apart(one: str, other: str) -> None:
    """Case, dots, composed letters and length all make a difference."""
    assert encode_user_id(one).lower() != encode_user_id(other).lower()


def test_an_ordinary_user_id_stays_readable() -> None:
    """A person who looks into the home recognises the user."""
    assert encode_user_id("telegram-12345") == "u-telegram-12345"


def test_an_encoded_name_fits_every_file_system() -> None:
    """Names stay far below the 255 bytes that file systems allow."""
    assert len(encode_user_id("字" * 10_000)) < 130


def test_an_empty_user_id_is_refused() -> None:
    """An empty id would name the directory of all users."""
    with pytest.raises(HomeError):
        encode_user_id("")


def test_a_profile_name_that_could_leave_the_home_is_refused(tmp_path: Path) -> None:
    """Only short plain names make a profile."""
    for name in ["../x", "a/b", "", ".", "UP", "a" * 65, "a b", "-x", "x\n"]:
        with pytest.raises(HomeError, match="profile name"):
            Home.at(tmp_path, name)


def test_a_profile_has_a_home_of_its_own_below_the_base(tmp_path: Path) -> None:
    """The default profile is the base itself, a named one lies under profiles/."""
    assert Home.at(tmp_path).root == tmp_path.resolve()
    assert Home.at(tmp_path, "default").root == tmp_path.resolve()
    assert Home.at(tmp_path, "work").root == tmp_path.resolve() / "profiles" / "work"


def _database(path: Path, application_id: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute("CREATE TABLE sessions (id TEXT)")
    connection.commit()
    connection.close()


def test_a_home_with_another_programs_database_is_refused(tmp_path: Path) -> None:
    """A state.db without our mark belongs to another program; the message points to importing."""
    _database(tmp_path / "state.db", 0)
    with pytest.raises(ForeignHomeError, match="import from this one"):
        Home.at(tmp_path).refuse_if_foreign()


def test_a_file_that_is_no_database_beside_a_history_of_memories_is_ours(tmp_path: Path) -> None:
    """No other program keeps one; without it, or as the database of another program, the file is foreign."""
    (tmp_path / "state.db").write_bytes(b"damage" * 700)
    with pytest.raises(ForeignHomeError):
        Home.at(tmp_path).refuse_if_foreign()
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "journal.jsonl").touch()
    Home.at(tmp_path).refuse_if_foreign()
    (tmp_path / "state.db").unlink()
    _database(tmp_path / "state.db", 0)
    with pytest.raises(ForeignHomeError):
        Home.at(tmp_path).refuse_if_foreign()


def test_a_profile_below_a_foreign_home_is_refused_too(tmp_path: Path) -> None:
    """A profile's directory would lie inside the other program's home."""
    _database(tmp_path / "state.db", 0)
    with pytest.raises(ForeignHomeError):
        Home.at(tmp_path, "work").refuse_if_foreign()


def test_a_home_with_our_own_database_is_ours(tmp_path: Path) -> None:
    """The application id in the database header tells our file from others."""
    _database(tmp_path / "state.db", int.from_bytes(b"Memo"))
    home = Home.at(tmp_path)
    home.refuse_if_foreign()
    assert home.state_db.exists()


def test_a_file_in_the_place_of_a_home_is_refused(tmp_path: Path) -> None:
    """A path that is not a directory cannot be a home."""
    (tmp_path / "f").write_text("x")
    with pytest.raises(HomeError, match="not a directory"):
        Home.at(tmp_path / "f").refuse_if_foreign()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
def test_a_home_where_nobody_can_create_a_directory_is_refused(tmp_path: Path) -> None:
    """Also for the superuser, who is told that every directory can be written to; one without write bits may be."""
    with pytest.raises(HomeError, match="/proc cannot be written to"):
        Home.at(Path("/proc/memoranda")).refuse_if_foreign()
    if os.geteuid() == 0:
        tmp_path.chmod(0o555)
        Home.at(tmp_path / "home").refuse_if_foreign()
        assert list(tmp_path.iterdir()) == []


def test_a_directory_with_other_files_is_no_home(tmp_path: Path) -> None:
    """Such as /etc, also for a profile below it; nothing is written there, and hidden files do not count."""
    (tmp_path / ".DS_Store").touch()
    (tmp_path / "lost+found").mkdir()
    Home.at(tmp_path).refuse_if_foreign()
    (tmp_path / "hosts").touch()
    for profile in (None, "work"):
        with pytest.raises(HomeError, match=r"contains other files \(hosts\)"):
            Home.at(tmp_path, profile).refuse_if_foreign()
    (tmp_path / "memories").mkdir()
    Home.at(tmp_path).refuse_if_foreign()


def test_whatever_is_left_of_a_home_makes_a_directory_one(tmp_path: Path) -> None:
    """Every entry that the reference of the files names, alone beside a file of the user."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text()
    listed = re.findall(r"^  (\S+)", page.partition("```text")[2].partition("```")[0], flags=re.MULTILINE)
    names = {name.split("/")[0].replace("<number>", "1").replace("<time>", "1") for name in listed}
    assert len(names) > 20
    # Many directories of a system have one, and a helper leaves it empty when it ends.
    for name in names - {"run"}:
        directory = tmp_path / f"with {name.strip('*.')}"
        directory.mkdir()
        (directory / "notes of mine").touch()
        (directory / name.replace("*", "state.db")).touch()
        Home.at(directory).refuse_if_foreign()


def test_a_database_in_which_nothing_was_created_is_not_another_programs(tmp_path: Path) -> None:
    """A power cut during the first start leaves one, and the home opens afterwards."""
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    Home.at(tmp_path).refuse_if_foreign()
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session("s", "cli")
