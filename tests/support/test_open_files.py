"""Who has a file open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.support.open_files import processes_with

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux tells")


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
        assert processes_with([file]) == processes_with([tmp_path / "none", link]) == [other.pid]
        file.unlink()
        assert processes_with([file]) == [other.pid]
        other.stdin.close()
    assert processes_with([file]) == []
