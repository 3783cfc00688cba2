"""A search that finds nothing does not believe an index that has lost something."""

from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.search.index import generations
from memoranda.search.index.generations import PAGE_SIZE
from memoranda.support.home import index_path
from tests.cli.terminal import Terminal
from tests.examples import is_full_run

WORDS = ("alpha", "kilo", "tango", "zulu")


@pytest.mark.slow
def test_a_torn_page_of_the_index_hides_nothing(tmp_path: Path) -> None:
    """Half of each page in turn, of every third outside of `make torture`; the index is rebuilt at once."""
    terminal = Terminal(tmp_path / "home")
    terminal.ok("memory", "list")
    with SessionDB(terminal.home / "state.db") as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"{word}{n}"} for n in range(700) for word in WORDS])
        db.index.catch_up()
        place = index_path(terminal.home / "state.db")
    whole = generations.generations(place)[0].read_bytes()
    for start in range(0, len(whole), PAGE_SIZE * (1 if is_full_run() else 3)):
        (file,) = generations.generations(place)
        generations.remove(file)
        file.write_bytes(whole[: start + PAGE_SIZE // 2] + bytes(PAGE_SIZE // 2) + whole[start + PAGE_SIZE :])
        for word in WORDS:
            assert terminal.json("search", f"{word}350")["count"] == 1, (start, word)
