"""What migrations of entries and skills have in common: their plans check what the write itself checks."""

from collections.abc import Callable, Sequence
from pathlib import Path

from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.operations import Add, MemoryReceipt, MemoryRefusal, plan
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest, validate_request
from memoranda.memory.skills import content_checks
from memoranda.memory.skills.skill_text import SKILL_FILE, file_problem
from memoranda.memory.skills.store import SkillStore, list_skill_files
from memoranda.support.origin import Origin
from memoranda.support.text_file import TextFile, read_text

# A person started the import, so it needs no further approval.
ORIGIN = Origin("import", explicit=True)
NO_ROOM = "there is no room for it"
_MAX_ATTEMPTS = 2


def entry_refusal(target: Target, text: str, entries: Sequence[str], scanner: EntryScanner, limit: int) -> str:
    """Return why an entry cannot be added to these entries, or ""."""
    request = WriteRequest(target, "add", ORIGIN, lambda current: plan(current, [Add(text)]), done="")
    verdict = validate_request(request, entries, scanner, limit)
    if not isinstance(verdict, MemoryRefusal):
        return ""
    if verdict.reason == "over_budget":
        return NO_ROOM
    return f"the scanner found: {', '.join(verdict.findings)}" if verdict.findings else verdict.message.split(". ")[0]


def add_entries(target: Target, texts: Sequence[str], store: MemoryStore) -> MemoryReceipt | MemoryRefusal:
    """Add entries as one change, which one undo reverts."""
    for _ in range(_MAX_ATTEMPTS):
        outcome = store.apply(target, [Add(text) for text in texts], ORIGIN)
        # The refusal records the outside change, so the next attempt succeeds.
        if not isinstance(outcome, MemoryRefusal) or outcome.reason != "drift":
            break
    assert isinstance(outcome, MemoryReceipt | MemoryRefusal), "an explicit write is never staged"
    return outcome


def read_skill(directory: Path, redact: Callable[[str], str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a skill by path, SKILL.md first, as they would be stored; and why others are not."""
    texts: dict[str, str] = {}
    omitted_files: dict[str, str] = {}
    for file in (SKILL_FILE, *list_skill_files(directory)):
        state = read_text(directory / file)
        if problem := file_problem(file):
            omitted_files[file] = problem
        elif isinstance(state, TextFile):
            texts[file] = content_checks.canonical_content(redact(state.text))
        else:
            omitted_files[file] = getattr(state, "problem", "it no longer exists")
    return texts, omitted_files


def skill_file_refusal(name: str, file: str, text: str, store: SkillStore) -> str:
    """Return why a file of a skill cannot be stored, or ""."""
    limit = store.settings.skill_char_limit if file == SKILL_FILE else store.settings.file_char_limit
    refusal = content_checks.check_content(name, file, text, "", limit)
    refusal = refusal or content_checks.scan_new_passages(name, text, "", store.screen_text, frozenset())
    return refusal.message.removesuffix(" Nothing was changed.") if refusal else ""
