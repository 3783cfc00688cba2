"""A program that stands in for `brv`: the same commands, answers with the recorded shapes, on real files.

The double makes `brv` a shell script that calls this file with its own path first, and puts `state.json` next to the
script: the folder of recorded answers, the fault to show, and whether a model is connected. It imports little, so that
it starts fast.
"""

import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
TREE = os.path.join(os.getcwd(), ".brv", "context-tree")
HISTORY = os.path.join(HERE, "history.json")


def main() -> int:
    with open(os.path.join(HERE, "state.json")) as file:
        state = json.load(file)
    with open(os.path.join(HERE, "calls.jsonl"), "a") as file:
        variables = {name: os.environ.get(name) for name in ("BRV_DISABLE_AUTOUPDATE", "NO_UPDATE_NOTIFIER")}
        file.write(json.dumps({"arguments": sys.argv[1:], "pid": os.getpid(), **variables}) + "\n")
    arguments = sys.argv[1:]
    text = arguments[arguments.index("--") + 1] if "--" in arguments else ""
    fault = state["fault"]
    return answer_command(state, arguments, text) if fault is None else show_fault(state, fault)


def show_fault(state: dict, fault: object) -> int:  # type: ignore[type-arg]
    if fault == "slow":
        # A child that holds the pipes open: it must be killed too.
        os.fork()
        time.sleep(600)
    if fault in ("truncated", "garbage"):
        print('{"command":"search","data":{"mess' if fault == "truncated" else "<html>It works!</html>")
        return 1
    return replay(state, "search_without_query")


def answer_command(state: dict, arguments: list, text: str) -> int:  # type: ignore[type-arg]
    if arguments[0] == "search":
        return search(state, text)
    if arguments[:2] == ["curate", "view"]:
        return answer(state, "curate_view", data=read_history())
    if arguments[0] in ("curate", "query") and not state["model"]:
        return replay(state, f"{arguments[0]}_without_model")
    if arguments[0] == "curate":
        return curate(state, text)
    return replay(state, arguments[0])


def read_recorded(state: dict, name: str) -> dict:  # type: ignore[type-arg]
    with open(os.path.join(state["recorded"], f"{name}.json")) as file:
        found: dict = json.load(file)  # type: ignore[type-arg]
    return found


def replay(state: dict, name: str) -> int:  # type: ignore[type-arg]
    recorded = read_recorded(state, name)
    sys.stdout.write(recorded["stdout"])
    sys.stderr.write(recorded["stderr"])
    return int(recorded["exit_code"])


def answer(state: dict, name: str, data: object) -> int:  # type: ignore[type-arg]
    """A recorded answer whose last line has other data."""
    lines = read_recorded(state, name)["stdout"].strip()
    lines = [json.dumps(json.loads(lines))] if lines.startswith("{\n") else lines.splitlines()
    last = json.loads(lines[-1])
    last["data"] = {**last["data"], **data} if isinstance(data, dict) else data
    print("\n".join([*lines[:-1], json.dumps(last)]))
    return 0


def search(state: dict, text: str) -> int:  # type: ignore[type-arg]
    words = set(re.findall(r"\w+", text.lower()))
    template = json.loads(read_recorded(state, "search")["stdout"])["data"]["results"][0]
    results = []
    for folder, _, names in os.walk(TREE):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                content = file.read()
            shared = words & set(re.findall(r"\w+", content.lower()))
            if shared and name.endswith(".md"):
                relative = os.path.relpath(path, TREE)
                results.append(
                    {**template, "path": relative, "excerpt": content[:800], "score": len(shared) / len(words)}
                )
    if not results:
        return replay(state, "search_nothing")
    return answer(state, "search", {"results": results, "totalFound": len(results)})


def curate(state: dict, text: str) -> int:  # type: ignore[type-arg]
    """Store a text as the real program did with a model that stores everything; it reports new files as updated."""
    history = read_history()
    path = os.path.join(TREE, "facts", "notes", f"note_{len(history)}.md")
    changed = []
    if "nothing" not in text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        changed.append(path)
    with open(HISTORY, "w") as file:
        json.dump([*history, {"id": "cur-1", "input": {"context": text}, "status": "completed"}], file)
    if state["lose_answer"]:
        os.abort()
    return answer(state, "curate", {"changes": {"created": [], "updated": changed}})


def read_history() -> list:  # type: ignore[type-arg]
    if not os.path.exists(HISTORY):
        return []
    with open(HISTORY) as file:
        found: list = json.load(file)  # type: ignore[type-arg]
    return found


if __name__ == "__main__":
    sys.exit(main())
