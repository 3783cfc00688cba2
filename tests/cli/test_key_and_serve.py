"""`memoranda server key` and `serve`: keys are printed once, and the service runs until it is asked to stop."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from memoranda.cli.main import command
from memoranda.cli.service import serve
from memoranda.home.access.request_log import AuditLog
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.service.mounts import COMPATIBLE
from tests.timing import GIVE_UP


def _run(home: Path, *arguments: str) -> Any:
    result = CliRunner().invoke(command, [*arguments, "--home", str(home), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_key_is_created_listed_and_revoked(tmp_path: Path) -> None:
    """Its secret is printed once and is in no file of the home."""
    created = _run(tmp_path, "key", "create", "--user", "ana", "--scope", "read", "--scope", "append", "--days", "2")
    assert created["key"].startswith(f"mk_{created['id']}_")
    (listed,) = _run(tmp_path, "key", "list")
    assert (listed["user"], listed["scopes"], listed["revoked_at"]) == ("ana", ["read", "append"], None)
    assert listed["expires_at"] > listed["created_at"]
    secret = created["key"].split("_", 2)[2].encode()
    assert not any(secret in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    _run(tmp_path, "key", "revoke", created["id"])
    assert _run(tmp_path, "key", "list")[0]["revoked_at"] is not None
    again = CliRunner().invoke(command, ["key", "revoke", created["id"], "--home", str(tmp_path)])
    assert (again.exit_code, "no valid key" in again.output) == (1, True)


def test_the_audit_log_is_shown(tmp_path: Path) -> None:
    """The newest first; nothing is written by looking."""
    assert _run(tmp_path, "key", "audit") == []
    assert not (tmp_path / "home.db").exists()
    database = ServiceDatabase(tmp_path)
    for action in ("memory.add", "session.delete"):
        AuditLog(database).add(key_id="k", tenant="default", user="ana", action=action, subject="s", request_id="r")
    database.close()
    assert [entry["action"] for entry in _run(tmp_path, "key", "audit")] == ["session.delete", "memory.add"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [(["--tenant", "a/b"], "cannot be a tenant"), (["--user", ""], "user id"), (["--name", "a\nb"], "printable")],
)
def test_a_key_for_nobody_is_refused(tmp_path: Path, options: list[str], problem: str) -> None:
    """With what to do instead, and nothing is written."""
    result = CliRunner().invoke(command, ["key", "create", "--scope", "read", *options, "--home", str(tmp_path)])
    assert (result.exit_code, problem in result.output) == (1, True)
    assert not (tmp_path / "home.db").exists()


def _serve(home: Path, *options: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "memoranda", "serve", "--home", str(home), "--port", "0", "--json", *options]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def _read_json(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line == "}\n":
            break
    return json.loads(text)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_service_answers_until_it_is_asked_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    """And then ends with code 0."""
    with _serve(tmp_path) as process:
        url = _read_json(process)["url"]
        assert httpx.get(f"{url}/readyz", timeout=GIVE_UP, trust_env=False).json() == {"status": "ok"}
        process.send_signal(number)
        _, errors = process.communicate(timeout=GIVE_UP)
        assert (process.returncode, errors) == (0, "")


@pytest.mark.slow
def test_an_open_address_without_a_key_is_refused(tmp_path: Path) -> None:
    """The message names the command that creates one."""
    with _serve(tmp_path, "--host", "0.0.0.0") as process:
        output, _ = process.communicate(timeout=GIVE_UP)
        assert (process.returncode, "memoranda server key create" in json.loads(output)["error"]) == (1, True)


@pytest.mark.slow
def test_a_compatible_api_is_offered_on_request(tmp_path: Path) -> None:
    """Without it mem0's paths do not exist."""
    for options, status in (((), 404), (("--compatible", "mem0"), 200)):
        with _serve(tmp_path, *options) as process:
            url = _read_json(process)["url"]
            assert httpx.get(f"{url}/v1/ping/", timeout=GIVE_UP, trust_env=False).status_code == status
            process.terminate()
            process.communicate(timeout=GIVE_UP)


@pytest.mark.parametrize(
    ("name", "said"),
    [("mem0,zep", "zep is not one of mem0"), ("langgraph", "MemorandaStore"), ("mem0, openai", "MemorandaSession")],
)
def test_an_api_that_does_not_exist_is_refused(tmp_path: Path, name: str, said: str) -> None:
    """A removed one with what to use instead."""
    result = CliRunner().invoke(command, ["serve", "--compatible", name, "--home", str(tmp_path)])
    assert result.exit_code == 2
    assert said in result.output.replace("\n", " ")


def test_the_names_of_the_option_are_those_of_the_mounts() -> None:
    """The command lists them itself, so that its help does not load the server."""
    assert tuple(COMPATIBLE) == serve._COMPATIBLE
