"""Measures what vendors recall that our own search does not find, in evidence and in tokens.

    python -m benchmarks.vendors.quality --data FOLDER                     our search, and every vendor that can run
    python -m benchmarks.vendors.quality --data FOLDER mem0 --json quality.json
    python -m benchmarks.vendors.quality --data FOLDER honcho --examples   also prints what only the vendor found

The same turns go into our own record and, through the provider, to the vendor's real server. Then both are asked every
question. The servers use the scripted model: it extracts statements by rules and embeds by words, so a vendor that
depends on a model shows less than it can. See docs/explanation/what-vendors-add.md.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.vendors.quality_result import Result, ask_all, format_outcome, format_rows, make_rows
from benchmarks.vendors.quality_sample import Sample, SampleTurn, load_sample
from benchmarks.vendors.real_vendor import CannotRun, RealVendor
from benchmarks.vendors.run import DEFAULT_CACHE, find_vendors
from benchmarks.vendors.scenario import set_up_home, show_progress, start_provider
from benchmarks.vendors.tcp_gate import TcpGate
from memoranda.errors import ProviderError, TemporaryProviderError
from memoranda.external.provider import MemoryProvider
from memoranda.external.vendors.texts import RecalledItem, format_items
from memoranda.home.session_db import SessionDB
from memoranda.search.tool import SessionSearchTool

PAGE = 5
"""How many sessions our search returns."""
ITEMS, RECALL_CHARS = 6, 4_000
"""How many items a vendor recalls for a turn, and how many characters of them a turn gets, unless it is set."""
_RECALL_SECONDS = 60.0
_ATTEMPTS = 5
_ASKING_SESSION = "memoranda-quality"


def measure_search(sample: Sample, folder: Path) -> tuple[Result, Result, Result]:
    """Ask our own search, as a model calls it: five sessions.

    Two more results show what a vendor's recall is worth in comparison: the next five sessions, and the six best
    messages in the format of a vendor's recall.
    """
    first, following = Result("our search"), Result("our search, next page")
    messages = Result(f"our search, {ITEMS} messages")
    with SessionDB(folder / "state.db") as sessions:
        began = time.monotonic()
        texts = _record(sessions, sample.turns)
        sessions.index.catch_up()
        first.write_seconds = following.write_seconds = messages.write_seconds = time.monotonic() - began
        tool = SessionSearchTool(lambda: sessions)

        def ask(question: str, **more: str) -> str:
            return json.dumps(tool.call({"query": question, "limit": PAGE, **more}), ensure_ascii=False)

        def ask_for_more(question: str) -> str:
            cursor = json.loads(ask(question)).get("cursor")
            return ask(question, cursor=cursor) if cursor else "{}"

        def ask_for_messages(question: str) -> str:
            hits = sessions.search_messages(question, limit=ITEMS)
            items = [RecalledItem(texts[hit["id"]], hit["timestamp"]) for hit in hits]
            return format_items(items, "memoranda", RECALL_CHARS)

        ask_all(sample.questions, ask, _read_results, first)
        ask_all(sample.questions, ask_for_more, _read_results, following)
        ask_all(sample.questions, ask_for_messages, str, messages)
        expected = sum(len(question.sessions) for question in sample.questions)
        hits = [_sessions_of(ask(question.text)) & question.sessions for question in sample.questions]
        first.note = f"{sum(map(len, hits))} of {expected} sessions with evidence are in its answers"
    return first, following, messages


def _read_results(answer: str) -> str:
    """The texts of an answer without JSON's escapes, which would join words."""
    return "\n".join(_strings(json.loads(answer).get("results")))


def _sessions_of(answer: str) -> set[str]:
    return {result["session_id"] for result in json.loads(answer)["results"]}


def _strings(value: Any) -> list[str]:
    """Every text of a JSON value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    return [value] if isinstance(value, str) else []


def _record(sessions: SessionDB, turns: Sequence[SampleTurn]) -> dict[int, str]:
    """Record the turns; returns the text of every message by its id."""
    texts: dict[int, str] = {}
    known = set()
    for turn in turns:
        if turn.session not in known:
            known.add(turn.session)
            sessions.create_session(turn.session, "cli", started_at=turn.time)
        contents = (("user", turn.user), ("assistant", turn.assistant))
        ids = sessions.append_messages(
            turn.session, [{"role": role, "content": text, "timestamp": turn.time} for role, text in contents]
        )
        texts.update(zip(ids, (text for _, text in contents), strict=True))
    return texts


def measure_vendor(vendor: RealVendor, sample: Sample, folder: Path) -> Result:
    """Write every turn through the vendor's provider and ask every question; a vendor that cannot run says why."""
    result = Result(vendor.title)
    try:
        show_progress(vendor, "installing and starting")
        vendor.install()
        vendor.start()
        with ExitStack() as stack:
            gate = None if vendor.port is None else stack.enter_context(closing(TcpGate(vendor.port)))
            set_up_home(vendor, gate, folder)
            provider = stack.enter_context(start_provider(vendor, folder))
            show_progress(vendor, f"writing {len(sample.turns)} turns")
            began = time.monotonic()
            _send(provider, sample.turns)
            vendor.settle()
            result.write_seconds = time.monotonic() - began
            show_progress(vendor, f"asking {len(sample.questions)} questions, after {result.write_seconds:.0f} s")
            ask_all(sample.questions, lambda question: _recall(provider, question, result), str, result)
    except (CannotRun, ProviderError) as error:
        result.reason = str(error)
    finally:
        vendor.stop()
    return result


def _send(provider: MemoryProvider, turns: Sequence[SampleTurn]) -> None:
    for number, turn in enumerate(turns):
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                provider.sync_turn(
                    turn.user,
                    turn.assistant,
                    session_id=turn.session,
                    idempotency_key=f"{turn.session}:{number}",
                    timestamp=turn.time,
                    attempt=attempt,
                )
                break
            except TemporaryProviderError:
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(attempt)


def _recall(provider: MemoryProvider, question: str, result: Result) -> str:
    """What a turn with this question would get, with more time than a turn has."""
    try:
        provider.queue_prefetch(question, session_id=_ASKING_SESSION)
        return provider.prefetch(question, session_id=_ASKING_SESSION, seconds=_RECALL_SECONDS, max_chars=RECALL_CHARS)
    except ProviderError as error:
        print(f"{result.title}: a recall failed: {error}", file=sys.stderr)
        result.failures += 1
        return ""


def print_examples(sample: Sample, ours: Result, other: Result) -> None:
    """Print the questions for which another memory recalled evidence that our search did not find."""
    for number, question in enumerate(sample.questions):
        for position in sorted(other.answers[number].found - ours.answers[number].found):
            print(f"\n{other.title}: {question.id} ({question.kind}) {question.text}\n  {question.evidence[position]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vendors", nargs="*", help="names of modules in this folder; all if none is given")
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets locomo and lme_pool")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="where servers are installed")
    parser.add_argument("--locomo", type=int, default=30, help="how many questions of LoCoMo")
    parser.add_argument("--longmemeval", type=int, default=15, help="how many questions of LongMemEval")
    parser.add_argument("--sessions", type=int, default=40, help="how many sessions of LongMemEval")
    parser.add_argument("--ours-only", action="store_true", help="run no vendor")
    parser.add_argument("--examples", action="store_true", help="print what only a vendor found; text of the sets")
    parser.add_argument("--json", type=Path, help="also write every answer here, without texts of the sets")
    options = parser.parse_args()
    sample = load_sample(options.data, options.locomo, options.longmemeval, options.sessions)
    with tempfile.TemporaryDirectory(prefix="memoranda-quality-", ignore_cleanup_errors=True) as work:
        ours, following, messages = measure_search(sample, Path(work))
        others = [following, messages]
        for kinds in {} if options.ours_only else find_vendors(options.vendors).values():
            for kind in kinds:
                others.append(measure_vendor(kind(options.cache), sample, Path(work, kind.__name__)))
    print(f"{len(sample.turns)} turns, {len(sample.questions)} questions\n")
    print(format_rows(make_rows(ours, others, messages)))
    for result in (ours, *others):
        print(format_outcome(result))
        if options.examples and result.answers:
            print_examples(sample, ours, result)
    if options.json:
        data = [asdict(result) | {"texts": None} for result in (ours, *others)]
        options.json.write_text(json.dumps(data, indent=2, default=sorted), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
