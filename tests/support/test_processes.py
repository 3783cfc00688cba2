"""A process counts as ended when it has ended, and never when it runs or nothing is known about it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoranda.support.processes import has_ended, process_identity, processes_that_opened
from tests.timing import wait_until

pytestmark = pytest.mark.slow

_SAY = """
import sys, time
from memoranda.support.processes import process_identity
print(process_identity(), flush=True)
"""


@contextmanager
def _another(then: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen([sys.executable, "-c", _SAY + then], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_one_that_lives_has_not_ended() -> None:
    """Neither this process nor another one."""
    assert not has_ended(process_identity())
    with _another("time.sleep(200)") as (name, _):
        assert name != process_identity()
        assert not has_ended(name)


def test_one_that_was_killed_has_ended() -> None:
    """At once, also while its parent has not asked after it yet."""
    with _another("time.sleep(200)") as (name, process):
        process.kill()
        wait_until(lambda: has_ended(name))
        process.wait()
        assert has_ended(name)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system does not tell when a process began")
def test_a_number_that_was_given_again_is_another_process() -> None:
    """This process is not one that had its number before."""
    number, began, machine = process_identity().split(".")
    assert has_ended(f"{number}.{int(began) - 1}.{machine}")


def test_of_others_nothing_is_known() -> None:
    """On another machine, by a name of another kind, or with an impossible number."""
    _, began, machine = process_identity().split(".")
    gone = "4194305"
    for name in (f"{gone}.{began}.elsewhere", f"{gone}-0123456789ab", gone, "", "x.y.z", f"{10**30}.{began}.{machine}"):
        assert not has_ended(name)
    assert has_ended(f"{gone}.{began}.{machine}")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_name_of_its_own() -> None:
    """Which ends with it, and not with its parent."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, process_identity().encode())
        os._exit(0)
    os.waitpid(child, 0)
    name = os.read(reader, 1_000).decode()
    for end in (reader, writer):
        os.close(end)
    assert name != process_identity()
    assert has_ended(name)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux lists open files")
def test_another_process_that_has_the_file_open_is_found(tmp_path: Path) -> None:
    """By its number; also through a link, and when the file was deleted since; this process is not another one."""
    file, link = tmp_path / "a file", tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    hold = "import sys; held = open(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with (
        file.open(),
        subprocess.Popen(
            [sys.executable, "-c", hold, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other,
    ):
        assert other.stdout is not None and other.stdin is not None
        other.stdout.readline()
        assert processes_that_opened([file]) == processes_that_opened([tmp_path / "none", link]) == [other.pid]
        file.unlink()
        assert processes_that_opened([file]) == [other.pid]
        other.stdin.close()
    assert processes_that_opened([file]) == []
