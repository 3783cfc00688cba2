"""Counts the instructions and modules of everyday commands, compared with a bare interpreter in the same run.

    python benchmarks/start_up.py                    # every command
    python benchmarks/start_up.py "memory list" mcp  # two of them
    python benchmarks/start_up.py --home DIRECTORY   # over that home, in which `remember` saves something

Each command is a separate process over a new home with a few notes and conversations. It runs once to cache its
bytecode, and a second time under valgrind, whose count does not depend on what else the machine does. `mcp` ends after
`tools/list`. Needs valgrind.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import memoranda

_COMMANDS = ("--help", "memory list", "remember CI runs on Debian 12", "sessions list", "search pytest", "mcp")
_REQUESTS = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)
_LOADED = (
    "import atexit, sys\n"
    "atexit.register(lambda: print(sum(n.startswith('memoranda') for n in sys.modules), len(sys.modules),"
    " file=sys.stderr))\n"
    "from memoranda.cli.main import main\n"
    "main()"
)


def fill_home(home: Path) -> None:
    """Create a home with ten notes and twenty conversations."""
    with memoranda.open(home) as memory:
        for number in range(10):
            memory.remember(f"Project {number} uses pytest with xdist.")
        for number in range(20):
            with memory.session(source="cli") as session, session.turn(f"How do we test project {number}?") as turn:
                turn.done("With pytest and xdist.")
        memory.sessions.index.catch_up()


def run(program: Sequence[str], environment: dict[str, str]) -> str:
    """Run a process that gets the requests of an MCP client; what it prints to standard error."""
    requests = "".join(f"{json.dumps(request)}\n" for request in _REQUESTS)
    done = subprocess.run(program, env=environment, input=requests, capture_output=True, text=True, check=True)
    return done.stderr


def count_instructions(program: Sequence[str], environment: dict[str, str]) -> int:
    """The instructions of one process, whose bytecode is cached."""
    run(program, environment)
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    found = re.search(r"I\s+refs:\s+([\d,]+)", run([*valgrind, *program], environment))
    assert found is not None, "valgrind printed no count"
    return int(found[1].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", default=_COMMANDS, help="the arguments of a command, as one text")
    parser.add_argument("--home", type=Path, help="an existing home")
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        home = arguments.home or Path(directory, "home")
        if not arguments.home:
            fill_home(home)
        environment = os.environ | {"MEMORANDA_HOME": str(home), "PYTHONPYCACHEPREFIX": f"{directory}/bytecode"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        bare = count_instructions([sys.executable, "-c", "pass"], environment)
        print(f"{'command':32} {'million':>8} {'x bare':>7} {'modules':>8} {'all':>5}")
        print(f"{'python -c pass':32} {bare / 1e6:8.0f} {1:7.1f}")
        for command in arguments.commands:
            count = count_instructions([sys.executable, "-m", "memoranda", *command.split()], environment)
            own, total = run([sys.executable, "-c", _LOADED, *command.split()], environment).split()[-2:]
            print(f"{command:32} {count / 1e6:8.0f} {count / bare:7.1f} {own:>8} {total:>5}", flush=True)


if __name__ == "__main__":
    main()
