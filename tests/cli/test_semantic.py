"""`memoranda semantic`: status, build and remove, and what the doctor says about search by meaning."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.support.home import Home, vector_files
from memoranda.upkeep import doctor
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

needs_vectors = pytest.mark.skipif(
    any(find_spec(package) is None for package in ("numpy", "tokenizers", "wordllama")),
    reason="numpy, tokenizers or wordllama is not installed",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def terminal(home: Home) -> Terminal:
    return Terminal(home.root)


def _record(home: Home, *texts: str) -> None:
    with SessionDB(home.state_db) as db:
        db.create_session("s", "cli")
        for text in texts:
            db.append_message("s", "user", text)


def test_an_empty_home_has_nothing(terminal: Terminal, home: Home) -> None:
    """It is off, says how to turn it on, and creates nothing."""
    assert "config set search.semantic on" in terminal.run("semantic", "status").output
    assert terminal.json("semantic", "status")["semantic"] is False
    assert terminal.run("semantic", "remove").output == "There was nothing to delete.\n"
    refused = terminal.run("semantic", "build")
    assert refused.exit_code == 1
    assert "Search by meaning is off" in refused.output
    assert not home.root.exists()


@needs_vectors
def test_a_build_embeds_everything(terminal: Terminal, home: Home) -> None:
    """Status shows how much there is, and remove deletes it."""
    _record(home, "My dog barks.", "It sleeps now.")
    config.set_value(home, "search.semantic", "on")
    assert "semantic_index on" in terminal.run("semantic", "build").output
    config.set_value(home, "search.semantic_index", "on")
    assert terminal.run("semantic", "build").output == "2 vectors are in the index.\n"
    (embedder,) = terminal.json("semantic", "status")["embedders"]
    assert (embedder["model"], embedder["dimensions"], embedder["problem"]) == ("wordllama", 256, None)
    assert (embedder["index"]["vectors"], embedder["index"]["complete"]) == (2, True)
    assert "2 vectors" in terminal.run("semantic", "status").output
    assert terminal.json("semantic", "remove")["vector_files"] == 1
    assert vector_files(home.state_db) == []
    assert terminal.json("semantic", "build")["vectors"] == 2


def test_a_model_that_is_missing_is_named(terminal: Terminal, home: Home) -> None:
    """By the status, by the doctor, and by every search, which answers nevertheless."""
    _record(home, "My dog barks at night.", "The dog next door barks, too.")
    config.set_value(home, "search.semantic", "on")
    config.set_value(home, "search.semantic_model", "onnx:/no/such/model")
    assert "onnx:/no/such/model does not work" in terminal.run("semantic", "status").output
    (issue,) = (issue for issue in doctor.examine(home) if issue.severity != "note")
    assert "searches rank by words only" in issue.problem
    answer = terminal.json("search", "why does the dog bark?")
    assert answer["count"] == 1
    assert "no ONNX model" in answer["note"]


def test_the_doctor_knows_settings_that_cannot_work(home: Home) -> None:
    """A service without an address, and vectors that nothing keeps up to date."""
    _record(home, "My dog barks.")
    config.set_value(home, "search.semantic", "on")
    config.set_value(home, "search.semantic_model", "endpoint:small")
    left = home.state_db.with_name("state.vectors.old.db")
    left.write_bytes(b"vectors")
    left.chmod(0o600)
    problems = {issue.problem: issue for issue in doctor.examine(home) if issue.severity != "note"}
    assert len(problems) == 2
    assert any("search.semantic_url is not set" in problem for problem in problems)
    repair = problems["has vectors that nothing keeps up to date"].repair
    assert repair is not None
    repair()
    assert not left.exists()
