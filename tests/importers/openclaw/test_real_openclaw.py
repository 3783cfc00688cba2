"""Against a real OpenClaw, where one is installed: it makes its own workspace and database, and both are understood."""

import shutil
import subprocess
from pathlib import Path

import pytest

from memoranda.importers.openclaw.installation import find_directories, inspect_installation
from memoranda.importers.openclaw.migration.runner import plan_migration
from memoranda.importers.openclaw.migration.steps import MigrationOptions
from memoranda.importers.openclaw.reader import OpenClaw
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer
from tests.importers.import_home import Home
from tests.importers.openclaw.material import contents, migration_target

_PROGRAM = shutil.which("openclaw")
_SESSION = "9a1d0c4e-2b3f-4a5b-8c6d-7e8f90a1b2c3"
_KEY = "sk-test-T3stT3stAb3dEf6hIj9kLmN0pQr5"


def _run(*arguments: str) -> str:
    assert _PROGRAM
    done = subprocess.run([_PROGRAM, *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(_PROGRAM is None, reason="there is no OpenClaw on this machine")
def test_what_a_real_openclaw_made_is_understood(tmp_path: Path) -> None:
    """A fresh workspace holds no memories; a conversation is there word for word; nothing of it is changed."""
    user = tmp_path / "user"
    user.mkdir(exist_ok=True)
    with ScriptedServer(lambda received: Reply("Understood: the boat lies in Kiel.")) as server:
        _run(
            "onboard", "--non-interactive", "--accept-risk", "--mode", "local", "--no-install-daemon",
            "--skip-channels", "--skip-skills", "--skip-health", "--skip-ui", "--auth-choice", "custom-api-key",
            "--custom-base-url", server.openai_url, "--custom-api-key", _KEY, "--custom-model-id", "scripted",
            "--custom-compatibility", "openai",
        )  # fmt: skip
        _run("agent", "--local", "--agent", "main", "--session-id", _SESSION, "-m", "Our boat lies in Kiel.")
    [root] = find_directories(user)
    before = {name: content for name, content in contents(root).items() if not name.endswith("-shm")}
    found = inspect_installation(root)
    assert found.agent == "main"
    assert found.workspaces == (root / "workspace",)
    planned = plan_migration(found, migration_target(tmp_path / "home"), MigrationOptions())
    assert {step.status for step in planned.steps if step.kind in ("memory", "user-profile", "soul")} <= {
        "unchanged", "skipped",
    }  # fmt: skip
    assert _KEY not in str([step.as_json() for step in planned.steps])
    home = Home(tmp_path / "record")
    home.take(OpenClaw(), root)
    said = [(each["role"], each["content"]) for each in home.messages(f"openclaw-{_SESSION}")]
    home.store.close()
    assert ("user", "Our boat lies in Kiel.") in said
    assert ("assistant", "Understood: the boat lies in Kiel.") in said
    assert {name: content for name, content in contents(root).items() if not name.endswith("-shm")} == before
