"""`memoranda eval`: measure models on the conversations of the home."""

from dataclasses import asdict
from typing import Any

import click

from memoranda.cli.context import Invocation, common_options, memory_options
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import dim, format_table, terminal_line
from memoranda.search.summary_quality import SummaryScore, build_tasks, measure
from memoranda.search.tool import SessionSearchTool

_EPILOG = """\b
Examples:
  memoranda eval summaries
  memoranda eval summaries --sample 5 --model gpt-5-mini --model gpt-5-nano
"""
_MAX_SAMPLE = 50
_MIN_MESSAGES = 4
_COLUMNS = ("model", "summaries", "failed", "coverage", "unsupported", "input", "output")


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Measure models on your own conversations. This calls the models, within the budget of background work."""


@command.command("summaries", epilog=_EPILOG)
@click.option(
    "--sample",
    type=click.IntRange(1, _MAX_SAMPLE),
    default=10,
    show_default=True,
    help="How many of the latest conversations to take questions from.",
)
@click.option("--model", "models", multiple=True, help="A model of the configured service. Can be repeated.")
@memory_options
def evaluate_summaries(invocation: Invocation, sample: int, models: tuple[str, ...]) -> None:
    """Compare models that summarize search results.

    The first words of each conversation are searched for, and each model summarizes the best result. Coverage is the
    share of the names and numbers in the messages found that the summary has; unsupported are those in the summary
    that occur neither in the conversation nor in the question. Tokens are sums over all summaries.
    """
    with open_home(invocation) as memory:
        db, settings = memory.sessions, memory.config
        db.index.catch_up()
        rows = db.list_sessions_rich(
            exclude_sources=settings.recall.hidden_sources, limit=sample, min_message_count=_MIN_MESSAGES
        )
        questions = [words for row in rows if (words := db.listing.first_words(row["id"]))]
        tasks = list(build_tasks(db, SessionSearchTool(lambda: db, settings.recall), questions))
        if not tasks:
            invocation.fail(f"No conversation with {_MIN_MESSAGES} or more messages was found to measure with.")
        default = settings.recall.summary_model or settings.model.name or "(default)"
        scores = [
            measure(name or default, memory.services.summarizer(memory.user, name=name), tasks)
            for name in models or ("",)
        ]
    data = {"questions": len(tasks), "models": [asdict(score) | {"coverage": score.coverage} for score in scores]}
    if not any(score.summaries for score in scores):
        invocation.fail(f"No summary could be made: {scores[-1].failure}", data)
    invocation.respond(_format_scores(scores), data)


def _format_scores(scores: list[SummaryScore]) -> str:
    lines = format_table([_COLUMNS, *map(_format_score, scores)])
    notes = [dim(terminal_line(f"{score.model}: {score.failure}")) for score in scores if score.failed]
    return "\n".join([dim(lines[0]), *lines[1:], *notes])


def _format_score(score: SummaryScore) -> list[str]:
    counts: tuple[Any, ...] = (score.unsupported_terms, score.input_tokens, score.output_tokens)
    coverage = "?" if score.coverage is None else f"{score.coverage:.0%}"
    return [
        terminal_line(score.model, 40), f"{score.summaries:,}", f"{score.failed:,}", coverage,
        *(f"{count:,}" for count in counts),
    ]  # fmt: skip
