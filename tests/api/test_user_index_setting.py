"""`search.index: user` for a whole home: search, forget and backup."""

from contextlib import suppress
from pathlib import Path

import pytest

import memoranda
from memoranda.api.forget import forget
from memoranda.errors import ConfigError
from memoranda.upkeep.backup.archive import list_files
from memoranda.upkeep.forgetting.report import ForgetSubject

pytestmark = pytest.mark.slow


def _home(root: Path, url: str) -> Path:
    root.mkdir()
    (root / "config.yaml").write_text(f"store:\n  url: {url}\nsearch:\n  index: user\n")
    return root


def _bytes(home: Path) -> bytes:
    found = b""
    for file in sorted(home.rglob("*")):
        # A thread may replace the position that it has followed.
        with suppress(FileNotFoundError, IsADirectoryError):
            found += file.read_bytes()
    return found


def _record(memory: memoranda.Memory, *texts: str) -> None:
    sessions = memory.sessions
    sessions.create_session(f"of-{memory.user}", "cli", user_id=memory.user)
    for text in texts:
        sessions.append_message(f"of-{memory.user}", "user", text)


def test_what_is_forgotten_leaves_the_index_of_its_user(postgres_url: str, tmp_path: Path) -> None:
    """For one user and for all; every byte of the home is read, and no backup contains the files."""
    home = _home(tmp_path / "home", postgres_url)
    with memoranda.open(home) as memory:
        ann, bob = memory.for_user("ann"), memory.for_user("bob")
        _record(ann, "the code is zorblatt", "the colour is plimforth", "the heron has port 80")
        _record(bob, "the shape is plimforth")
        for one in (ann, bob):
            assert one.search("plimforth")["count"] == 1
        (directory,) = home.glob("server-*.index.users")
        assert not [file for file in list_files(home) if ".index." in file.name]
        assert b"zorblatt" in _bytes(directory)
        assert ann.forget(text="zorblatt").complete
        assert b"zorblatt" not in _bytes(home)
        assert forget(memory.services, None, ForgetSubject(text="plimforth"), all_users=True).complete
        assert b"plimforth" not in _bytes(home)
        assert ann.search("heron")["count"] == 1
        assert ann.search("zorblatt")["count"] == bob.search("plimforth")["count"] == 0


def test_a_record_in_a_file_has_one_index(tmp_path: Path) -> None:
    """The setting is refused there, and the message says what to change."""
    (tmp_path / "config.yaml").write_text("search:\n  index: user\n")
    with pytest.raises(ConfigError, match=r"store\.url"):
        memoranda.open(tmp_path)
