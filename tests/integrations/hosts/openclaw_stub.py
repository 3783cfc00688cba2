"""A stand-in for OpenClaw that loads the installed plugin as OpenClaw does, and calls its hooks and tools."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.timing import GIVE_UP

# Calls are [kind, name, first argument, context]; a tool is created for its context first.
_DRIVER = """
import { readFileSync } from "node:fs";
const { default: plugin } = await import(process.argv[2]);
const hooks = {}, tools = {};
plugin.register({
  registrationMode: "full",
  pluginConfig: JSON.parse(process.argv[3]),
  logger: { warn: (text) => console.error(text) },
  on: (name, handler) => { hooks[name] = handler; },
  registerTool: (create, options) => { tools[options.name] = create; },
});
for (const [kind, name, value, context] of JSON.parse(readFileSync(0, "utf8"))) {
  const answer = kind === "tool" ? await tools[name](context).execute("id", value) : await hooks[name](value, context);
  console.log(JSON.stringify(answer ?? null));
}
console.log(JSON.stringify(Object.keys(tools)));
"""


def call_plugin(node: str, plugin: Path, *calls: list[Any], config: dict[str, Any] | None = None) -> list[Any]:
    """Loads the plugin and makes the calls; returns their results, and the names of the tools at the end."""
    driver = plugin.parent.parent / "driver.mjs"
    driver.write_text(_DRIVER)
    done = subprocess.run(
        [node, str(driver), str(plugin), json.dumps(config or {})], input=json.dumps(calls),
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
