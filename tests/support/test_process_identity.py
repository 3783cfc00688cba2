"""A process is known to have ended when it has, and never when it has not or nobody can know."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from memoranda.support.process_identity import has_ended, this_process
from tests.timing import GIVE_UP

_SAY = (
    "import sys, time; from memoranda.support.process_identity import this_process; print(this_process(), flush=True); "
)


@contextmanager
def _another(then: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen([sys.executable, "-c", _SAY + then], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_one_that_lives_has_not_ended() -> None:
    """Neither this one nor another, whoever asks."""
    assert not has_ended(this_process())
    with _another("time.sleep(200)") as (name, _):
        assert name != this_process()
        assert not has_ended(name)


def test_one_that_was_killed_has_ended() -> None:
    """At once, also while its parent has not asked after it yet."""
    with _another("time.sleep(200)") as (name, process):
        process.kill()
        deadline = time.monotonic() + GIVE_UP
        while not has_ended(name) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert has_ended(name)
        process.wait()
        assert has_ended(name)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system does not tell when a process began")
def test_a_number_that_was_given_again_is_another_process() -> None:
    """This process is not one that had its number before."""
    number, began, machine = this_process().split(".")
    assert has_ended(f"{number}.{int(began) - 1}.{machine}")


def test_of_others_nothing_is_known() -> None:
    """On another machine, by a name of another kind, or with an impossible number."""
    _, began, machine = this_process().split(".")
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
        os.write(writer, this_process().encode())
        os._exit(0)
    os.waitpid(child, 0)
    name = os.read(reader, 1_000).decode()
    for end in (reader, writer):
        os.close(end)
    assert name != this_process()
    assert has_ended(name)
