"""What every importer of another memory or agent promises, on files that the program itself wrote."""

import json
import os
import shutil
import time
from datetime import datetime
from pathlib import Path

import pytest

from memoranda.importers.importer import Importer
from memoranda.importers.source_files import MAX_LINE_BYTES
from memoranda.importers.sources import SOURCES
from memoranda.importers.undo import ImportHistory, UndoReport
from tests.importers.import_home import Home
from tests.importers.samples import Sample
from tests.importers.samples.databases import DATABASES
from tests.importers.samples.documents import DOCUMENTS

pytestmark = pytest.mark.slow

SAMPLES = [*DATABASES, *DOCUMENTS]
HOSTILE_BYTES = {
    "empty": b"",
    "zeros": bytes(4096),
    "words": b"words, not the format\n",
    "deep": b"[" * 100_000,
    "nul_text": b'{"type": "\x00", "role": "user", "content": "\x00"}\n',
    "wrong_types": b'{"results": [1, null, {"id": [], "memory": {}}], "messages": 7, "history": "x", "agents": {}}',
}


# Every importer brings every message every day; what it does with damaged files and with undo, every third does.
every_third_daily = pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=str(sample), marks=[pytest.mark.slow] if place % 3 else [])
        for place, sample in enumerate(SAMPLES)
    ],
    indirect=True,
)


@pytest.fixture(params=SAMPLES, ids=str)
def sample(request: pytest.FixtureRequest) -> Sample:
    found: Sample = request.param
    return found


@pytest.fixture
def files(sample: Sample, tmp_path: Path) -> Path:
    # By its own name, which is a part of the ids of some sessions. The memory of an agent is a repository.
    copied = Path(shutil.copytree(sample.path, tmp_path / sample.path.name))
    for memory in [*copied.glob("agents/*/memory"), *copied.glob("*/memfs/*/memory")]:
        (memory / ".git").mkdir()
    _settle(copied, 0)
    return copied


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return Home(tmp_path / "home")


def _settle(files: Path, seconds: int) -> None:
    """Date the files back: what has just changed may still be written, and some readers leave the end of it."""
    for file in files.rglob("*"):
        os.utime(file, (1.7e9 + seconds, 1.7e9 + seconds))


def _grow(sample: Sample, files: Path) -> int:
    added = sample.grow(files)
    _settle(files, 60)
    return added


def _import(home: Home, sample: Sample, files: Path, import_id: str | None = None) -> int:
    """Import with an id, as the command does; returns how many messages, items and states are new."""
    reader = SOURCES[sample.source].load()
    importer = Importer(home.root, home.store, import_id=import_id)
    try:
        return importer.apply(reader, reader.scan(files)).new
    finally:
        importer.close()


def _removed(report: UndoReport) -> int:
    return report.messages + len(report.items) + report.states


def _exported(home: Home) -> str:
    items = list(home.store.item_transfer.iter_export())
    return json.dumps([home.everything(), items], sort_keys=True, default=str)


def test_the_report_counts_what_the_program_stored(sample: Sample, files: Path, home: Home) -> None:
    """Sessions and messages are those of the source, the preview says the same, and nothing is a problem."""
    reader = SOURCES[sample.source].load()
    planned, done = home.plan(reader, files), home.take(reader, files)
    assert (planned.new, done.new) == (sample.messages, sample.messages)
    assert {name: session["message_count"] for name, session in home.everything().items()} == sample.sessions
    assert [problem.text for problem in done.problems] == []
    assert dict(done.skipped) == sample.skipped


def test_times_ids_and_texts_are_the_programs(sample: Sample, files: Path, home: Home) -> None:
    """A message keeps its id and the time at which it was said; the session starts with its first one."""
    home.take(SOURCES[sample.source].load(), files)
    session_id, external_id, at, text = sample.known
    message = next(m for m in home.messages(session_id) if external_id in m["external_id"])
    assert message["content"] == text
    assert message["timestamp"] == pytest.approx(datetime.fromisoformat(at).timestamp())
    session = home.everything()[session_id]
    assert session["started_at"] == pytest.approx(home.messages(session_id)[0]["timestamp"], abs=3600)
    assert session["host"] == sample.source


@every_third_daily
def test_a_session_ends_with_its_last_message(sample: Sample, files: Path, home: Home) -> None:
    """Not with the import, also after a later import added messages."""
    _import(home, sample, files)
    _assert_ends(home)
    _grow(sample, files)
    _import(home, sample, files)
    _assert_ends(home)


def _assert_ends(home: Home) -> None:
    for name, session in home.everything().items():
        assert session["ended_at"] == max(message["timestamp"] for message in home.messages(name))


def test_a_second_import_adds_nothing(sample: Sample, files: Path, home: Home) -> None:
    """Neither after a first one, nor when the state of imports was lost."""
    assert _import(home, sample, files) == sample.messages
    before = _exported(home)
    assert _import(home, sample, files) == 0
    for file in home.root.glob("home.db*"):
        file.unlink()
    assert _import(home, sample, files) == 0
    assert _exported(home) == before


def test_a_grown_source_adds_only_what_is_new(sample: Sample, files: Path, home: Home) -> None:
    """What the program wrote since the last import, and nothing else."""
    _import(home, sample, files)
    assert _import(home, sample, files) == 0
    added = _grow(sample, files)
    assert added > 0
    assert _import(home, sample, files) == added


@every_third_daily
def test_undo_leaves_the_record_as_it_was(sample: Sample, files: Path, home: Home) -> None:
    """Undoing the second import, then the first, exports byte by byte what was exported before each of them."""
    home.store.sessions.create_session("own", "cli", title="Own")
    home.store.messages.append_messages("own", [{"role": "user", "content": "hello", "timestamp": 1.0}])
    empty = _exported(home)
    assert _import(home, sample, files, "first") == sample.messages
    first = _exported(home)
    added = _grow(sample, files)
    assert _import(home, sample, files, "second") == added
    history = ImportHistory(home.root, home.store)
    assert [logged.id for logged in history.imports()] == ["second", "first"]
    preview, undone = history.preview("second"), history.undo("second")
    assert (_removed(preview), _removed(undone)) == (added, added)
    assert _exported(home) == first
    assert _removed(history.undo("first")) == sample.messages
    assert _exported(home) == empty
    history.close()
    assert _import(home, sample, files, "third") == sample.messages + added


@every_third_daily
@pytest.mark.parametrize("content", HOSTILE_BYTES.values(), ids=HOSTILE_BYTES)
def test_hostile_files_have_no_effect(sample: Sample, files: Path, home: Home, content: bytes) -> None:
    """Whatever replaces the program's files, no error is raised and nothing of it is executed."""
    for file in files.rglob("*"):
        if file.is_file():
            file.write_bytes(content)
    reader = SOURCES[sample.source].load()
    home.take(reader, files, rescan=True)
    home.take(reader, next(file for file in files.rglob("*") if file.is_file()), rescan=True)


@every_third_daily
def test_truncated_files_give_what_is_whole_or_a_problem(sample: Sample, files: Path, home: Home) -> None:
    """Half of each file never raises an error, and never adds more than the whole."""
    for file in files.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            file.write_bytes(content[: len(content) // 2])
    summary = home.take(SOURCES[sample.source].load(), files)
    assert summary.new <= sample.messages


def test_an_endless_line_is_reported(sample: Sample, files: Path, home: Home) -> None:
    """A file that is one line of 192 MB is not read into memory."""
    single = max((file for file in files.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    os.truncate(single, 0)
    os.truncate(single, 3 * MAX_LINE_BYTES)
    assert home.take(SOURCES[sample.source].load(), single).problem_count >= 1


@every_third_daily
def test_links_out_of_a_folder_are_not_read(sample: Sample, files: Path, home: Home, tmp_path: Path) -> None:
    """Another person may have written the folder, and a link in it may lead to something private."""
    for number, file in enumerate(sorted(files.rglob("*"))):
        if file.is_file():
            outside = tmp_path / "outside" / str(number) / file.name
            outside.parent.mkdir(parents=True)
            file.rename(outside)
            file.symlink_to(outside)
    assert home.take(SOURCES[sample.source].load(), files).new == 0


@every_third_daily
def test_pipes_and_links_are_not_followed_forever(sample: Sample, files: Path, home: Home) -> None:
    """A pipe in place of a file does not block, and a link to the directory above is no cycle."""
    for file in files.rglob("*"):
        if file.is_file():
            file.unlink()
            os.mkfifo(file)
    (files / "up").symlink_to(files, target_is_directory=True)
    assert home.take(SOURCES[sample.source].load(), files).new == 0
