"""How many modules each everyday command loads: what a command does not use must not slow its start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys
from memoranda.cli.main import main
try:
    main()
finally:
    print(sum(name.startswith("memoranda") for name in sys.modules), len(sys.modules), file=sys.stderr)
"""
# The most modules of this package, and of all packages, that a command may load: what it loads now, and a little room.
_LIMITS = {
    "--help": (16, 140),
    "memory list": (112, 243),
    "remember CI runs on Debian 12": (119, 252),
    "sessions list": (145, 288),
    "search deadlock": (186, 335),
    "mcp": (177, 328),
}
# What an MCP client asks for before it shows its tools; other commands read no input.
_REQUESTS = "".join(
    json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {}}) + "\n"
    for number, method in enumerate(["initialize", "tools/list"])
)


@pytest.mark.parametrize(
    "arguments", ["--help", *(pytest.param(each, marks=pytest.mark.slow) for each in list(_LIMITS)[1:])]
)
def test_a_command_loads_no_more_modules_than_it_may(arguments: str, tmp_path: Path) -> None:
    """A command that loads a part that it does not use exceeds its number of modules."""
    own, total = _LIMITS[arguments]
    command = [sys.executable, "-c", _PROGRAM, "--home", str(tmp_path), *arguments.split()]
    run = subprocess.run(command, input=_REQUESTS, capture_output=True, text=True, check=True)
    loaded = [int(number) for number in run.stderr.split()[-2:]]
    assert loaded[0] <= own
    assert loaded[1] <= total


def test_a_command_looks_for_garbage_at_most_five_times(tmp_path: Path) -> None:
    """Visiting every object again and again while modules load, and once more at the end, is a tenth of a command."""
    program = (
        "import atexit, gc, sys\n"
        "from memoranda.__main__ import main\n"
        "before = sum(each['collections'] for each in gc.get_stats())\n"
        "count = lambda: sum(each['collections'] for each in gc.get_stats()) - before\n"
        "atexit.register(lambda: print(count(), gc.get_freeze_count(), file=sys.stderr))\n"
        "main()"
    )
    command = [sys.executable, "-c", program, "--home", str(tmp_path), "memory", "list"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    collections, spared = map(int, run.stderr.split()[-2:])
    assert collections <= 5
    assert spared > 10_000


def test_the_search_for_the_bytes_of_a_text_loads_few_modules() -> None:
    """Forgetting starts its process again and again."""
    program = "import sys, memoranda.upkeep.forgetting.byte_search as _; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = [name for name in run.stdout.split() if name.startswith("memoranda")]
    assert len(loaded) <= 10, loaded


@pytest.mark.parametrize("arguments", ["chat --query Hello", "browse --json"])
def test_only_a_person_at_a_terminal_loads_the_line_editor_and_the_renderer(arguments: str, tmp_path: Path) -> None:
    """They take longer to load than most commands to run."""
    program = _PROGRAM.partition("finally:")[0] + "finally:\n    print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", program, "--home", str(tmp_path), *arguments.split()]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    loaded = run.stderr.split()
    assert "memoranda.cli.main" in loaded
    assert not {"rich", "prompt_toolkit"}.intersection(loaded)
