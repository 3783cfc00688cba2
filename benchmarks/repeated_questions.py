"""Asks the same question many times, then checks that the conversation that answers it still comes first.

Four searches are checked, each in a throw-away home: the `session_search` tool, `memoranda search`, the hook that a
host runs on every prompt, and the turn of an agent. The question is asked with the same words, reworded, in Chinese and
in Japanese; each repetition gets no answer, or one that repeats what was recalled. Then the question is never repeated,
but turns about other things search for it and quote the original in their answers.

    python benchmarks/repeated_questions.py                    # 20 repetitions
    python benchmarks/repeated_questions.py --repetitions 200
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import memoranda
from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.model import ScriptedModel

ORIGINAL = "original"
DAY = 86_400.0
BEGIN = 1_790_000_000.0


@dataclass(frozen=True)
class Case:
    """One question: the conversation that answers it, and how it is asked later."""

    name: str
    original: tuple[str, ...]
    questions: tuple[str, ...]
    no_answer: str
    answer: str
    """What a repeated answer says; it is part of what a search must show."""


_ENGLISH = (
    "The import worker deadlocks about once a day, and we have to fix it. All eight are alive but nothing moves.",
    "That is a deadlock: the worker takes the ledger lock before the queue lock, the scheduler does the reverse.",
    "And what cures it?",
    "The fix for the import worker deadlock: take both locks in one order, queue first.",
)
CASES = (
    Case(
        "same words",
        _ENGLISH,
        ("How did we fix the deadlocks of the import worker?",),
        "I could not find anything about that.",
        "take both locks in one order, queue first",
    ),
    Case(
        "reworded",
        _ENGLISH,
        (
            "How did we fix the deadlocks of the import worker?",
            "What was the fix for the import worker deadlock?",
            "Do you remember how we fixed the deadlocked import workers?",
            "how was the deadlock in the import worker fixed",
            "Remind me: import worker deadlock, what did we do to fix it?",
        ),
        "I do not know.",
        "take both locks in one order, queue first",
    ),
    Case(
        "Chinese",
        (
            "导入进程死锁，每天一次，要怎么解决才好。八个进程都还在，但全都不动。",
            "这是死锁：导入进程先拿账本锁再拿队列锁，调度器的顺序正好相反。",
            "那要怎么改？",
            "导入进程死锁的解决办法：两把锁都按同一个顺序拿，先队列后账本。",
        ),
        ("导入进程死锁怎么解决？", "导入进程死锁怎么解决的？", "之前导入进程死锁怎么解决？"),
        "我没有找到相关的内容。",
        "两把锁都按同一个顺序拿",
    ),
    Case(
        "Japanese",
        (
            "インポートのワーカーが一日一回止まります。八つとも生きていますが動きません。",
            "これはデッドロックです。ワーカーは台帳のロックを先に取り、スケジューラーは逆の順番で取ります。",
            "直し方を教えてください。",
            "対策として、両方のロックを同じ順番、キューを先に取るようにします。これでワーカーのデッドロックはなくなりました。",
        ),
        ("ワーカーのデッドロックはどう対策しましたか？", "ワーカーのデッドロックの対策は何でしたか？"),
        "見つかりませんでした。",
        "同じ順番、キューを先に取る",
    ),
)
OTHERS = (
    ("Which port does the staging database use?", "Port 5433, behind the VPN."),
    ("The nightly import took two hours.", "The disk was full; the worker waited for space."),
    ("Write a summary of the release.", "Done: three features and two fixes."),
    ("我们什么时候迁移数据库？", "下个月的第一个周末。"),
    ("リリースはいつですか？", "来週の火曜日です。"),
)


PROMPTS = (
    "What should I watch for when two threads take locks?",
    "Which tests would you add?",
    "Explain the order to a new colleague.",
    "请给新同事解释一下。",
)
NO_ANSWER, REPEATED, QUOTED = "no answer", "repeat the answer", "quoted in other turns"


def prepare(home: Path, case: Case, repetitions: int, replies: str) -> None:
    """Record the original, other conversations, and then the repetitions of the question, a day apart."""
    with memoranda.open(home) as memory:
        _record(memory, ORIGINAL, case.original, BEGIN)
        for number, messages in enumerate(OTHERS):
            _record(memory, f"other-{number}", messages, BEGIN + number * DAY)
        for number in range(repetitions):
            question = case.questions[number % len(case.questions)]
            time = BEGIN + (10 + number) * DAY
            if replies == QUOTED:
                _record_recalling(memory, f"recalling-{number}", PROMPTS[number % len(PROMPTS)], question, case, time)
                continue
            reply = f"{case.answer}." if replies == REPEATED else case.no_answer
            _record(memory, f"asking-{number}", (question, reply), time)
        memory.sessions.index.catch_up()


def _record(memory: memoranda.Memory, session_id: str, messages: Sequence[str], time: float) -> None:
    memory.sessions.create_session(session_id, "cli", started_at=time)
    rows = [
        {"role": "assistant" if number % 2 else "user", "content": text, "timestamp": time + 60 * number}
        for number, text in enumerate(messages)
    ]
    memory.sessions.append_messages(session_id, rows)


def _record_recalling(
    memory: memoranda.Memory, session_id: str, prompt: str, query: str, case: Case, time: float
) -> None:
    """Record a turn that searches, and quotes the answer of the original."""
    call = {"id": "call_1", "function": {"name": "session_search", "arguments": json.dumps({"query": query})}}
    answer = case.original[-1]
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": answer, "tool_name": "session_search", "tool_call_id": "call_1"},
        {"role": "assistant", "content": f"From an earlier conversation: {answer}"},
    ]
    memory.sessions.create_session(session_id, "cli", started_at=time)
    memory.sessions.append_messages(session_id, [row | {"timestamp": time} for row in rows])


def find_with_tool(home: Path, question: str) -> list[str]:
    """Return the sessions that `session_search` finds, best first."""
    with memoranda.open(home) as memory:
        return [result["session_id"] for result in memory.search(question)["results"]]


def find_with_command(home: Path, question: str) -> list[str]:
    """Return the sessions that `memoranda search` prints, best first."""
    answer = json.loads(_run(home, "search", "--json", question))
    return [result["session_id"] for result in answer["results"]]


def find_with_hook(home: Path, question: str) -> list[str]:
    """Return the sessions in the evidence of the prompt hook, best first."""
    payload = json.dumps({"prompt": question, "cwd": str(home), "session_id": "now"})
    output = _run(home, "hook", "claude-code", "UserPromptSubmit", "--wait", stdin=payload)
    text = json.loads(output)["hookSpecificOutput"]["additionalContext"] if output.strip() else ""
    return [part.split(",")[0] for part in text.split("session_id ")[1:] if "," in part.split("\n")[0]]


def find_with_agent(home: Path, question: str) -> list[str]:
    """Return the sessions that an agent's search finds in the turn in which the question is asked."""
    found: list[str] = []

    def answer(system: str, messages: Sequence[Any], tools: Sequence[Any]) -> Reply:
        found.extend(result["session_id"] for result in json.loads(messages[-1]["content"])["results"])
        return Reply("Done.")

    call = Reply(tool_calls=(ToolCall("call_1", "session_search", json.dumps({"query": question})),))
    with memoranda.open(home) as memory:
        memory.agent(ScriptedModel([call, answer])).turn(question)
    return found


SEARCHES: dict[str, Callable[[Path, str], list[str]]] = {
    "session_search": find_with_tool,
    "memoranda search": find_with_command,
    "prompt hook": find_with_hook,
    "agent turn": find_with_agent,
}


def _run(home: Path, *arguments: str, stdin: str = "") -> str:
    command = [sys.executable, "-m", "memoranda", "--home", str(home), *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    completed = subprocess.run(
        command, input=stdin, capture_output=True, encoding="utf-8", env=environment, check=False
    )
    if completed.returncode:
        raise RuntimeError(f"{command} failed: {completed.stderr}")
    return completed.stdout


def measure(case: Case, repetitions: int, replies: str) -> dict[str, str]:
    """Count, for each search, the wordings for which the original comes first, and the repetitions shown at most."""
    cells = {}
    with TemporaryDirectory(prefix="memoranda-questions-", ignore_cleanup_errors=True) as root:
        home = Path(root)
        prepare(home, case, repetitions, replies)
        for name, find in SEARCHES.items():
            answers = [find(home, question) for question in case.questions]
            first = sum(found[:1] == [ORIGINAL] for found in answers)
            repeated = max(sum(not session.startswith((ORIGINAL, "other-")) for session in found) for found in answers)
            cells[name] = f"{first} of {len(answers)}, {repeated}"
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    print("For how many wordings the original comes first, and how many repetitions are shown beside it at most:\n")
    print(f"| {options.repetitions} repetitions | replies | {' | '.join(SEARCHES)} |")
    print("|---|---|" + "---|" * len(SEARCHES))
    for case in CASES:
        for replies in ("not asked yet", NO_ANSWER, REPEATED, QUOTED):
            cells = measure(case, 0 if replies == "not asked yet" else options.repetitions, replies)
            print(f"| {case.name} | {replies} | {' | '.join(cells.values())} |", flush=True)


if __name__ == "__main__":
    main()
