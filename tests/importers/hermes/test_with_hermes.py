"""Against a database that Hermes itself has written; needs `.hermes-venv` (`tests/acceptance/README.md`)."""

import os
import subprocess
from pathlib import Path

import pytest

from memoranda.importers.hermes.reader import Hermes
from tests.importers.hermes.import_check import check
from tests.importers.import_home import Home

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".hermes-venv" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Hermes is not installed in .hermes-venv")
def test_everything_that_hermes_wrote_is_imported_once_while_it_runs(tmp_path: Path) -> None:
    """Titles, calls, reasoning, compacted rows and lineage, from the open store and after it was closed."""
    where, home = tmp_path / "hermes", Home(tmp_path / "home")
    where.mkdir()
    script = Path(__file__).with_name("as_hermes.py")
    environment = {**os.environ, "HERMES_HOME": str(where)}
    with subprocess.Popen(
        [PYTHON, script, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        summary = home.take(Hermes(), where)
        process.communicate("\n")
    assert process.returncode == 0
    assert (summary.problem_count, summary.count("new")) == (0, 5)
    assert home.take(Hermes(), where).messages == 0
    rows = home.everything()
    assert rows["hermes-plain"]["title"] == "Deadlock"
    assert (rows["hermes-continued"]["parent_session_id"], rows["hermes-continued"]["relation"]) == (
        "hermes-rotated", "compression"
    )  # fmt: skip
    texts = {name: [each.get("content") for each in row["messages"]] for name, row in rows.items()}
    said = [f"{role} {number} in inplace" for number in range(4) for role in ("user", "assistant")]
    summary_text = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted."
    context = [said[0], summary_text, *said[-2:]]
    assert texts["hermes-inplace"] == [*said, *context, "after compression in place"]
    assert len(home.store.messages.get_messages("hermes-inplace")) == 5
    assert texts["hermes-continued"][1] == summary_text
    assert texts["hermes-continued"][4:] == ["after rotation"]
    assert texts["hermes-short"] == []
    called = rows["hermes-plain"]["messages"][1]
    assert called["tool_calls"][0]["function"]["arguments"] == '{"cmd": "ls é"}'
    assert called["reasoning"] == "I look."
    assert "not said" not in str(rows)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Hermes is not installed in .hermes-venv")
def test_every_column_of_every_row_is_the_same_here(tmp_path: Path) -> None:
    """Except ids and what the how-to documents; a second import adds nothing."""
    assert check(PYTHON, tmp_path) == []
