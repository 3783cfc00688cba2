"""The scripted server as a program of its own, for tests that kill their client, or for trying a client by hand."""

import argparse
import contextlib
import importlib
import json
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from memoranda.llm.demo import DemoModel
from memoranda.llm.model import Usage
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest, Script, Step, read_step


def main(arguments: list[str] | None = None) -> None:
    """Serve until the program is ended; the first line of its output is the address."""
    parser = argparse.ArgumentParser(prog="memoranda.testing.scripted", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    parser.add_argument("--log", type=Path, help="every request goes there, one JSON object per line")
    parser.add_argument("--script", default="demo", help="a JSON file, module:function, or demo")
    parser.add_argument("--window", type=int, default=0, help="refuse requests with more tokens")
    parser.add_argument("--key", default="", help="refuse requests with another key")
    given = parser.parse_args(arguments)
    server = ScriptedServer(
        read_script(given.script), port=given.port, log=given.log, window=given.window, key=given.key
    )
    signal.signal(signal.SIGTERM, lambda *_: server.stopped.set())
    print(server.url, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.stopped.wait()
    server.close()


def read_script(name: str) -> Iterable[Step | Script] | Script:
    """The script that a name on the command line means."""
    if name == "demo":
        return demo_script()
    if ":" in name and not Path(name).exists():
        module, function = name.split(":", 1)
        script: Script = getattr(importlib.import_module(module), function)
        return script
    return [read_step(step) for step in json.loads(Path(name).read_text("utf-8"))]


def demo_script() -> Script:
    """Everything is answered by the demo model."""
    model = DemoModel()

    def answer(received: ReceivedRequest) -> Step:
        # What it used is counted by the server, by the rule of the API that was called.
        return replace(model.reply(*received.conversation), usage=Usage())

    return answer


if __name__ == "__main__":
    main()
