"""The log of hooks has every call with its result, is small, and has no secrets."""

import os
import time
from pathlib import Path

import pytest

from memoranda.integrations.hooks.log import HookLog, read_calls
from memoranda.search.recall_log import GIVEN, LATE, NOTHING, STOPPED, hook_calls_path, mask_words


@pytest.mark.parametrize(
    "prompt",
    [
        "Why is AKIAIOSFODNN7EXAMPLE refused?",
        "my password is swordfish",
        "The token: swordfish",
        "Use key swordfish, please",
        "curl -H 'X-Api-Key:swordfish' postgres://ana:swordfish@db/x",
        "ghp_swordfishABCDEFGHIJKLMNOPQRSTUVWXYZ01",
        "-----BEGIN RSA PRIVATE KEY----- MIIswordfish0",
    ],
)
def test_what_could_be_a_secret_is_not_logged(tmp_path: Path, prompt: str) -> None:
    """Neither in the log nor in a part of it."""
    HookLog(tmp_path).begin("claude-code", "UserPromptSubmit", "s", prompt)
    logged = hook_calls_path(tmp_path).read_text()
    assert "swordfish" not in logged and "AKIAIOSFODNN7EXAMPLE" not in logged


def test_ordinary_words_stay_readable() -> None:
    """Otherwise the list of prompts would be useless."""
    assert mask_words("How did we fix the flaky upload test, again?") == "How did we fix the flaky upload test, again?"
    assert mask_words("Staging is heron.internal, Python 3.12.") == "Staging is heron.internal, Python 3.12."
    assert mask_words("run  a1b2c3d4e5 and\nx_9 now") == "run ••• and ••• now"
    assert len(mask_words("word " * 1000)) <= 160


def test_every_call_has_its_result_and_the_newest_is_first(tmp_path: Path) -> None:
    """A late answer stays late, although the thread may still find one; a call without a result was stopped."""
    logs = []
    for number in range(3):
        log = HookLog(tmp_path)
        log.call_id = f"call{number}"
        log.begin("claude-code", "UserPromptSubmit", "s", f"prompt {number}")
        logs.append(log)
    logs[0].end(NOTHING, "nothing cleared the floor", {"candidates": []})
    logs[1].end(LATE, "no answer within 2 seconds")
    logs[1].end(GIVEN, "1 conversation cleared the floor")
    hook_calls_path(tmp_path).write_text(hook_calls_path(tmp_path).read_text() + 'null\n{"id": 3}\n{"id": "x"}\n{half')
    assert [call["outcome"] for call in read_calls(tmp_path)] == ["running", LATE, NOTHING]
    lines = hook_calls_path(tmp_path).read_text().replace(f'"at": {int(time.time()) // 1000}', '"at": 1')
    hook_calls_path(tmp_path).write_text(lines)
    assert read_calls(tmp_path)[0]["outcome"] == STOPPED


@pytest.mark.slow
def test_the_log_stays_small_and_keeps_the_newest(tmp_path: Path) -> None:
    """However many prompts there are."""
    for number in range(2_000):
        log = HookLog(tmp_path)
        log.call_id = f"{number}"
        log.begin("claude-code", "UserPromptSubmit", "s", "word " * 100)
    assert hook_calls_path(tmp_path).stat().st_size <= 400_000
    assert "1999" in {call["id"] for call in read_calls(tmp_path)}
    assert [path.name for path in hook_calls_path(tmp_path).parent.iterdir()] == [hook_calls_path(tmp_path).name]
    if os.name == "posix":
        assert hook_calls_path(tmp_path).stat().st_mode & 0o077 == 0


def test_no_home_is_created_and_an_unwritable_log_is_not_an_error(tmp_path: Path) -> None:
    """A hook must not fail because of its log."""
    HookLog(tmp_path / "home").begin("claude-code", "UserPromptSubmit", "s", "prompt")
    assert not (tmp_path / "home").exists()
    (tmp_path / "logs").write_text("a file in the place of the directory")
    HookLog(tmp_path).begin("claude-code", "UserPromptSubmit", "s", "prompt")
    assert read_calls(tmp_path) == []
