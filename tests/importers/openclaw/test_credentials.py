"""Credentials of OpenClaw are found in all its files, recognized by name, and never copied unasked."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.openclaw.credentials import MigrationRedactor, find_credentials, is_secret_name
from memoranda.importers.openclaw.installation import inspect_installation
from memoranda.importers.openclaw.reader import OpenClaw
from tests.importers.import_home import Home
from tests.importers.openclaw.material import GATEWAY, OPENAI, TELEGRAM, make_openclaw, write_transcript

pytestmark = pytest.mark.slow

_STORE = {
    "version": 1,
    "profiles": {
        "openrouter:default": {"type": "api_key", "provider": "openrouter", "key": "sk-or-v1-Ab3dEf6hIj9kLmN0"},
        "anthropic:ann": {"type": "oauth", "provider": "anthropic", "access": "oat-Ab3dEf6hIj9kLmN0"},
        "odd": [1],
    },
}


def found(root: Path) -> dict[str, tuple[str, bool]]:
    return {each.name: (each.value, each.is_usable) for each in find_credentials(inspect_installation(root))}


def test_those_in_files_are_found(tmp_path: Path) -> None:
    """Keys of use here by their names, all others by their place; a reference to a variable is none."""
    assert found(make_openclaw(tmp_path / "oc")) == {
        "OPENAI_API_KEY": (OPENAI, True),
        "TELEGRAM_BOT_TOKEN": (TELEGRAM, False),
        "gateway.auth.token": (GATEWAY, False),
        "channels.telegram.botToken": (TELEGRAM, False),
    }


def _in_a_file(root: Path) -> None:
    file = root / "agents" / "main" / "agent" / "auth-profiles.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(_STORE))


def _in_a_database(root: Path, name: str, table: str, column: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"CREATE TABLE {table} (name TEXT, {column} TEXT)")
        database.execute(f"INSERT INTO {table} VALUES ('x', ?), ('y', '[]'), ('z', 'broken')", (json.dumps(_STORE),))
        database.commit()


@pytest.mark.parametrize("era", ["file", "agent", "state"])
def test_sign_ins_of_every_era_are_found(tmp_path: Path, era: str) -> None:
    """An API key is of use here; an account with a sign-in is not."""
    if era == "file":
        _in_a_file(tmp_path)
    elif era == "agent":
        _in_a_database(tmp_path, "agents/main/agent/openclaw-agent.sqlite", "auth_profile_store", "store_json")
    else:
        _in_a_database(tmp_path, "state/openclaw.sqlite", "config_machine_state", "value_json")
    assert found(tmp_path) == {
        "OPENROUTER_API_KEY": ("sk-or-v1-Ab3dEf6hIj9kLmN0", True),
        "auth profile anthropic:ann": ("oat-Ab3dEf6hIj9kLmN0", False),
    }


def test_no_credential_is_printed() -> None:
    """Not even by accident."""
    credentials = find_credentials(inspect_installation(make_openclaw(Path.home() / "oc")))
    assert OPENAI not in repr(credentials)
    assert GATEWAY not in repr(credentials)


def test_credentials_of_openclaw_are_redacted_in_messages(tmp_path: Path) -> None:
    """An agent may have printed its own settings; the message itself is kept."""
    line = {
        "type": "message", "id": GATEWAY, "timestamp": "2026-05-01T08:00:00Z",
        "message": {"role": "assistant", "content": [
            {"type": "text", "text": f"The token is {GATEWAY}."},
            {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"command": f"login {GATEWAY}"}}]},
    }  # fmt: skip
    root = make_openclaw(tmp_path / "oc")
    write_transcript(root, [line], "leak.jsonl")
    home = Home(tmp_path / "home")
    home.take(OpenClaw(), root)
    [message] = home.messages("openclaw-leak")
    home.store.close()
    assert message["content"] == "The token is [redacted:known_value]."
    assert GATEWAY not in json.dumps(message["tool_calls"])
    assert message["external_id"] == GATEWAY


@pytest.mark.parametrize("name", ["token", "botToken", "api_key", "API-KEY", "clientSecret", "webhookUrl", "password"])
def test_names_of_credentials_are_known(name: str) -> None:
    """However they are spelled."""
    assert is_secret_name(name)
    assert MigrationRedactor().settings({"a": [{name: "hunter2"}]}) == {"a": [{name: "[redacted]"}]}


@pytest.mark.parametrize("name", ["maxTokens", "tokenLimit", "name", "keyboard", "mode"])
def test_other_names_are_not(name: str) -> None:
    """Settings that only sound like it stay readable."""
    assert MigrationRedactor().settings({name: "plain words"}) == {name: "plain words"}


def test_environments_and_headers_lose_every_value() -> None:
    """And keep the names; a reference to a variable may stay."""
    redactor = MigrationRedactor()
    assert redactor.settings({"env": {"A": "x", "B": "${B}"}, "headers": {"X-Any": "y"}, "port": 1, "on": True}) == {
        "env": {"A": "[redacted]", "B": "${B}"}, "headers": {"X-Any": "[redacted]"}, "port": 1, "on": True,
    }  # fmt: skip
    assert redactor.redacted_count == 2


_settings = st.recursive(
    st.sampled_from([OPENAI, f"say {GATEWAY} aloud", "plain", 7, None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["token", "a", "env", GATEWAY]), inner),
    max_leaves=8,
)


@given(settings=_settings)
def test_every_known_value_is_redacted(settings: Any) -> None:
    """Anywhere in the settings, as a key or as a value."""
    passed = json.dumps(MigrationRedactor([OPENAI, GATEWAY]).settings(settings))
    assert OPENAI not in passed
    assert GATEWAY not in passed
