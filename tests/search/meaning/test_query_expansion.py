"""Words that a model suggests for a query."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command
from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.models.model import Reply
from memoranda.search.index.postings import Filters
from memoranda.search.meaning.query_expansion import ExpansionCache, ExpansionRescorer, read_words
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel
from memoranda.testing.scripted.server import ScriptedServer

pytestmark = pytest.mark.slow

_QUESTION = "which board games do we own?"


def _fill(db: SessionDB) -> None:
    for name, text in {"chess": "The chess set is in the cupboard.", "board": "The board met on Monday."}.items():
        db.create_session(name, "cli")
        db.append_message(name, "user", text)


def _expand(db: SessionDB, home: Path, *answers: str) -> ScriptedModel:
    model = ScriptedModel([Reply(answer) for answer in answers])
    rescorer = ExpansionRescorer(lambda _: model, ExpansionCache(home), seconds=5.0)
    db.rescore_with(lambda: [rescorer])
    return model


def test_suggested_words_find_what_the_query_does_not_name(db: SessionDB, tmp_path: Path) -> None:
    """With less weight than typed words, and with a signal of their own."""
    _fill(db)
    _expand(db, tmp_path, "chess, Monopoly, Scrabble")
    found = db.find(_QUESTION, Filters(db.scope), limit=5)
    assert {hit.session_id for hit in found.hits} == {"chess", "board"}
    assert found.expanded == ("chess", "Monopoly", "Scrabble")
    assert {hit.session_id: "expanded" in hit.signals for hit in found.hits} == {"chess": True, "board": False}


def test_a_query_is_paid_for_once(db: SessionDB, tmp_path: Path) -> None:
    """The words are kept in the home, by model, query and user, without the query itself."""
    _fill(db)
    model = _expand(db, tmp_path, "chess")
    for text in (_QUESTION, "Which  board games do we OWN?"):
        assert db.find(text, Filters(db.scope), limit=5).expanded == ("chess",)
    assert len(model.requests) == 1
    stored = (tmp_path / "expansions.json").read_text()
    assert "board" not in stored
    assert (tmp_path / "expansions.json").stat().st_mode & 0o077 == 0


def test_a_model_that_fails_costs_only_its_words(db: SessionDB, tmp_path: Path) -> None:
    """The typed words answer, with a note; nothing is kept."""
    _fill(db)
    _expand(db, tmp_path, "…")
    found = db.find(_QUESTION, Filters(db.scope), limit=5)
    assert [hit.session_id for hit in found.hits] == ["board"]
    assert found.note == "The query was not expanded: The model did not suggest any word."
    assert ExpansionCache(tmp_path).count() == 0


def test_what_is_typed_exactly_is_not_expanded(db: SessionDB, tmp_path: Path) -> None:
    """It means what it says, and costs nothing."""
    _fill(db)
    model = _expand(db, tmp_path)
    assert db.find('"board met"', Filters(db.scope), limit=5).expanded == ()
    assert not model.requests


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("chess, Go, C++, node.js.", ["chess", "Go", "C++", "node.js"]),
        ("- chess\n- AND\n- not\n- chess", ["chess"]),
        ('"quoted" (group) prefix*', ["quoted", "group", "prefix"]),
        ("", []),
        (" ".join(f"w{number}" for number in range(50)), [f"w{number}" for number in range(12)]),
    ],
)
def test_only_words_are_read(answer: str, words: list[str]) -> None:
    """No operator of a query survives, and there are at most twelve."""
    assert read_words(answer) == words


def test_a_damaged_cache_is_empty(tmp_path: Path) -> None:
    """It can be deleted at any time, too."""
    cache = ExpansionCache(tmp_path)
    cache.path.write_text("{")
    assert cache.get("m", "q", "") is None
    cache.put("m", "q", "", ["w"])
    assert cache.get("m", "q", "") == ["w"]
    assert cache.get("m", "q", "ann") is None
    assert cache.remove()
    assert not cache.remove()


@pytest.mark.usefixtures("model_sdks")
def test_the_command_expands_once(tmp_path: Path) -> None:
    """`--expand` needs no setting, and `why` shows the words."""
    home = Home(tmp_path / "home")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
    config.set_value(home, "model.name", "small")
    with ScriptedServer([Reply("chess")]) as server:
        config.set_value(home, "model.base_url", server.url)
        first = _run(home, "--expand")
        again = _run(home, "--expand")
    plain = _run(home)
    assert first["why"]["expanded"] == again["why"]["expanded"] == ["chess"]
    assert "expanded" not in plain["why"]


def _run(home: Home, *options: str) -> Any:
    arguments = ["--home", str(home.root), "--json", "search", _QUESTION, "--why", *options]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
