"""Runs the scripted server as a program, for tests that kill their client and for programs that need a model."""

import argparse
import contextlib
import importlib
import json
import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from memoranda.testing.scripted.embeddings import DIMENSIONS, answer_embeddings
from memoranda.testing.scripted.rules import RuleModel
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Script, Step, read_step


def main(arguments: list[str] | None = None) -> None:
    """Serves until the process is terminated; prints the address first."""
    parser = argparse.ArgumentParser(prog="memoranda.testing.scripted", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--log", type=Path, help="append every request to this file, one JSON object per line")
    parser.add_argument("--script", help="a JSON file with the steps, or module:function; without it, by rules")
    parser.add_argument(
        "--call", action="append", default=[], metavar="TOOL", help="by rules: call this tool if offered"
    )
    parser.add_argument(
        "--dimensions", type=int, default=DIMENSIONS, help="of embeddings, if a request names no number"
    )
    parser.add_argument("--window", type=int, default=0, help="refuse requests with more tokens")
    parser.add_argument("--key", default="", help="refuse requests with another key")
    options = parser.parse_args(arguments)
    if options.script and options.call:
        parser.error("--call applies to answers by rules; a script says itself which tools it calls.")
    server = ScriptedServer(
        read_script(options.script) if options.script else RuleModel(options.call),
        port=options.port,
        log=options.log,
        window=options.window,
        key=options.key,
        embeddings=partial(answer_embeddings, dimensions=options.dimensions),
    )
    signal.signal(signal.SIGTERM, lambda *_: server.stopped.set())
    print(server.url, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.stopped.wait()
    server.close()


def read_script(name: str) -> Iterable[Step | Script] | Script:
    """The steps of a JSON file, or the function of module:function."""
    if ":" in name and not Path(name).exists():
        module, function = name.split(":", 1)
        script: Script = getattr(importlib.import_module(module), function)
        return script
    return [read_step(step) for step in json.loads(Path(name).read_text("utf-8"))]


if __name__ == "__main__":
    main()
