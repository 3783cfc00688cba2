"""`memoranda search` and `recall` at a service."""

from typing import Any

import click

from memoranda.api.client import RemoteMemory
from memoranda.api.recall import RecallResult
from memoranda.cli.context import Invocation
from memoranda.cli.filter_options import current_project
from memoranda.cli.recall import print_result
from memoranda.cli.remote.refusals import refuse_options
from memoranda.cli.search import format_search_answer
from memoranda.memory.curated.settings import TARGETS
from memoranda.search.related_entries import entries_matching

_SEARCH_OPTIONS = ("limit", "sort", "since", "until", "why")


def search(
    invocation: Invocation, memory: RemoteMemory, *, words: tuple[str, ...], project: str | None, **options: Any
) -> None:
    passed = {name: options.pop(name) for name in _SEARCH_OPTIONS}
    passed |= {"source": options.pop("source") or None, "role_filter": options.pop("role") or None}
    refuse_options(invocation, options)
    answer: Any = memory.search(" ".join(words), project=_project(project), **passed)
    if invocation.as_json:
        invocation.respond("", answer)
        return
    # The command has no option for the cursor of a service.
    click.echo(format_search_answer({name: value for name, value in answer.items() if name != "cursor"}))


def recall(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    words: tuple[str, ...],
    limit: int,
    project: str | None,
    fenced: bool,
    chars: int,
) -> None:
    question = " ".join(words)
    if not question.strip():
        invocation.fail("The question is empty.")
    entries = {target: entries_matching(question, memory.entries(target)) for target in TARGETS}
    answer: Any = memory.search(question, limit=limit, project=_project(project))
    print_result(invocation, RecallResult(entries, "", answer), fenced, chars)


def _project(name: str | None) -> str | None:
    """The name of a project; "this" is the one of the directory in which the command was started."""
    return current_project() if name == "this" else name
