"""Reads the collected attacks and harmless texts, and puts related sources into one group.

A group is held out as a whole: a model that has seen one half of a collection knows the wording of the other half.
"""

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path

import synthetic

_FAMILIES = (
    "spikee",
    "agentdojo",
    "locomo",
    "notinject",
    "tldr",
    "qualifire",
    "garak",
    "bipia",
    "asb",
    "aiml-testing",
    "pint",
    "wildguard",
)
_CONVERSATIONS = (("lme_pool", 2000), ("beam100k", 1600), ("cmrc_zh", 600), ("jsquad_ja", 600))
_MAX_MESSAGE_CHARS = 700
SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True)
class Sample:
    """One text; `judged` texts count in the figures, the others only help to train."""

    text: str
    attack: bool
    group: str
    category: str
    judged: bool = True


def load(data: Path) -> list[Sample]:
    """Return everything to train on: the judged sets, conversations, and sentences from templates."""
    samples = [
        *_read_judged(data / "security" / "attacks.dev.jsonl", True),
        *_read_judged(data / "security" / "benign.dev.jsonl", False),
    ]
    samples += _conversations(data / "recall")
    for attack in (True, False):
        made = {
            SYNTHETIC: synthetic.make_sentences(1500 if attack else 2000, attack),
            f"{SYNTHETIC} twins": synthetic.make_jailbreaks(1500, attack),
            f"{SYNTHETIC} foreign": synthetic.make_foreign(500, attack),
        }
        samples += [Sample(text, attack, name, SYNTHETIC, False) for name, texts in made.items() for text in texts]
    return samples


def group_of(source: str) -> str:
    """Return the group that a source belongs to: a collection, or one repository."""
    for family in _FAMILIES:
        if family in source.lower():
            return family
    return ":".join(source.split(":")[:2]) if source.startswith("github:") else source.split(maxsplit=1)[0]


def _read_judged(path: Path, attack: bool) -> list[Sample]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [Sample(row["text"], attack, group_of(row["source"]), row["category"]) for row in rows]


def _conversations(folder: Path) -> list[Sample]:
    samples: list[Sample] = []
    for name, count in _CONVERSATIONS:
        with gzip.open(folder / f"{name}.dev.json.gz") as file:
            pool = json.load(file)
        texts = {
            message["text"]
            for store in pool["stores"]
            for session in store["sessions"]
            for message in session["messages"]
        }
        texts |= {query["q"] for query in pool["queries"]}
        chosen = random.Random(7).sample(sorted(texts), min(count, len(texts)))
        samples += [Sample(text[:_MAX_MESSAGE_CHARS], False, name, "conversation", False) for text in chosen]
    return samples
