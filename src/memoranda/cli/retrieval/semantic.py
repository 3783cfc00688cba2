"""`memoranda semantic`: what search by meaning uses, and its index of vectors."""

from typing import Any

import click

from memoranda.api.memory import Memory
from memoranda.api.search_extras import SearchExtras
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.imports.summary_text import format_size
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import ProgressLine, terminal_line
from memoranda.errors import MemorandaError
from memoranda.home import config
from memoranda.search.meaning.embedder import INSTALL
from memoranda.search.meaning.query_expansion import ExpansionCache
from memoranda.support.home import remove_vectors, vector_files

_EPILOG = f"""\b
Examples:
  {INSTALL}
  memoranda config set search.semantic on
  memoranda semantic status
  memoranda config set search.semantic_index on
  memoranda semantic build
"""
_OFF = "Search by meaning is off: 'memoranda config set search.semantic on' turns it on."
_NO_INDEX = "No index of vectors is kept: 'memoranda config set search.semantic_index on' turns it on."


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Search by meaning as well as by words: see what it uses, build its index of vectors, delete what it keeps."""


@command.command()
@common_options
def status(invocation: Invocation) -> None:
    """Show the embedders, whether they work, and how much of the record has vectors. Calls no service."""
    with open_home(invocation) as memory:
        data = _describe(memory)
    invocation.respond(_format(data), data)


@command.command()
@common_options
def build(invocation: Invocation) -> None:
    """Embed all messages now, which the background does step by step; a build that was interrupted continues."""
    with open_home(invocation) as memory:
        settings = memory.config.recall
        if not (settings.semantic and settings.semantic_index):
            invocation.fail(_OFF if not settings.semantic else _NO_INDEX)
        _ = memory.sessions
        extras = memory.services.search_extras
        assert extras is not None
        try:
            with ProgressLine(visible=not invocation.as_json) as line:
                for index in extras.indexes():
                    index.catch_up(progress=lambda done, all: line.update(f"Embedding {done:,} of {all:,} messages"))
            messages = [index.counts().messages for index in extras.indexes()]
        except MemorandaError as error:
            invocation.fail(f"The vectors are not complete: {error}")
    total = sum(messages)
    text = f"{total:,} {'vector is' if total == 1 else 'vectors are'} in the index."
    invocation.respond(text, {"success": True, "vectors": total})


@command.command()
@common_options
def remove(invocation: Invocation) -> None:
    """Delete the index of vectors and the words that models suggested; both are made again when they are needed."""
    with open_home(invocation) as memory:
        home, base = memory.home, config.vectors_base(memory.home, memory.config)
    files = len(vector_files(base))
    remove_vectors(base)
    had_words = ExpansionCache(home.root).remove()
    removed = [f"{files} {'file' if files == 1 else 'files'} with vectors"] if files else []
    removed += ["the suggested words"] if had_words else []
    text = f"Deleted {' and '.join(removed)}." if removed else "There was nothing to delete."
    invocation.respond(text, {"success": True, "vector_files": files, "expansions": had_words})


def _describe(memory: Memory) -> dict[str, Any]:
    settings = memory.config.recall
    data: dict[str, Any] = {
        "semantic": settings.semantic,
        "index": settings.semantic and settings.semantic_index,
        "embedders": [],
        "rerank": settings.rerank or None,
        "expand": settings.expand,
        "expansions": ExpansionCache(memory.home.root).count(),
    }
    if settings.semantic:
        _ = memory.sessions
        extras = memory.services.search_extras
        assert extras is not None
        data["embedders"] = [
            _describe_embedder(extras, number, model, with_index=data["index"])
            for number, model in enumerate(settings.semantic_model)
        ]
    return data


def _describe_embedder(extras: SearchExtras, number: int, model: str, *, with_index: bool) -> dict[str, Any]:
    try:
        embedder = extras.embedders()[number]
        found: dict[str, Any] = {"model": model, "name": embedder.name, "dimensions": embedder.dimensions or None}
        found |= {"fast": embedder.is_fast, "multilingual": embedder.is_multilingual, "problem": None}
        if with_index:
            index = extras.index_of(number)
            progress, counts = index.progress(), index.counts()
            found["index"] = {
                "vectors": counts.messages,
                "sessions": counts.sessions,
                "bytes": counts.bytes,
                "complete": progress.complete,
                "file": str(index.path),
            }
    except MemorandaError as error:
        found = {"model": model, "problem": str(error)}
    return found


def _format(data: dict[str, Any]) -> str:
    lines = [] if data["semantic"] else [_OFF]
    for embedder in data["embedders"]:
        lines.append(_format_embedder(embedder))
    if data["semantic"] and not data["index"]:
        lines.append(f"It reranks what the words find. {_NO_INDEX}")
    if data["rerank"]:
        lines.append(f"The first results are reranked by {data['rerank']}.")
    if data["expand"]:
        lines.append("A model suggests further words for every query.")
    if data["expansions"]:
        lines.append(f"The suggested words of {data['expansions']:,} queries are kept.")
    return "\n".join(map(terminal_line, lines))


def _format_embedder(embedder: dict[str, Any]) -> str:
    if embedder["problem"]:
        return f"{embedder['model']} does not work: {embedder['problem']}"
    text = f"{embedder['model']} is ready"
    if index := embedder.get("index"):
        state = "complete" if index["complete"] else "incomplete, and continues in the background"
        text += f"; {index['vectors']:,} vectors ({format_size(index['bytes'])}), {state}"
    return f"{text}."
