"""The demo model's summaries: sentences of the transcript, sorted under the headings that were asked for."""

import re
from collections.abc import Sequence

from memoranda.llm.demo.words import best, content_words, sentences

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_MESSAGE = re.compile(r"^\[\d+\] (?P<role>\w+)[^\n:]*: (?P<said>.*?)(?=^\[\d+\] \w+|\Z)", re.DOTALL | re.MULTILINE)
_WORDS = re.compile(r"at most ([\d,]+) words")
_PATH = re.compile(
    r"(?<![\w/])[~.]?(?:[\w.-]*/)+[\w.-]+|\b[\w-]+\.(?:py|md|ts|js|go|rs|toml|yaml|yml|json|sql|txt|sh)\b"
)
_CALLS = re.compile(r"\n  calls .*", re.DOTALL)
_LONGEST = 40
_DEFAULT_WORDS = 300
# In which section a sentence belongs; the first that fits takes it.
_KINDS = (
    ("Constraints", re.compile(r"(?i)\b(?:must|never|always|only|don['’]t|do not|prefers?|avoid|limit|at most)\b")),
    ("Decisions", re.compile(r"(?i)\b(?:decid\w*|agreed?|chose\w*|choose|go with|went with|will use|instead of)\b")),
    ("Open points", re.compile(r"(?i)\b(?:to-?do|next|remaining|still|not yet|later|left to|fail\w*|unclear|open)\b")),
    (
        "State",
        re.compile(r"(?i)\b(?:done|fixed|add\w*|chang\w*|created?|updat\w*|works|pass\w*|saved|is now|runs)\b|\d{2,}"),
    ),
)


def asks_for_summary(said: str) -> bool:
    """Whether a message is a request for the running summary of a conversation."""
    return "<transcript>" in said and bool(_HEADING.search(said.rpartition("</transcript>")[2]))


def summary_for(request: str) -> str:
    """The summary, with the headings of the request in their order."""
    instructions = request.rpartition("</transcript>")[2]
    headings = _HEADING.findall(instructions)
    limit = _WORDS.search(instructions)
    words = int(limit[1].replace(",", "")) if limit else _DEFAULT_WORDS
    sections = _previous(_inside(request, "previous-summary"), headings)
    for heading, points in _sorted(_inside(request, "transcript")).items():
        known = sections.setdefault(heading, [])
        known += [point for point in points if point not in known]
    _shorten(sections, words)
    return "\n\n".join(f"## {name}\n{_listed(sections.get(name, []))}" for name in headings)


def gist(question: str, transcript: str) -> str:
    """What a transcript holds that bears on a question, in its own sentences."""
    found = best(content_words(question), sentences(transcript), least=0.3)
    return " ".join(found[:4]) or "Nothing in the transcript bears on it."


def _sorted(transcript: str) -> dict[str, list[str]]:
    messages = [(match["role"], _CALLS.sub("", match["said"]).strip()) for match in _MESSAGE.finditer(transcript)]
    asked = [said for role, said in messages if role == "user" and said]
    made: dict[str, list[str]] = {"Goal": [], "Files": []}
    if asked:
        made["Goal"] = [_cut(sentences(asked[0])[0])]
        if len(asked) > 1:
            made["Goal"].append(f"Latest request: {_cut(asked[-1])}")
    for role, said in messages:
        if role not in ("user", "assistant"):
            continue
        for place, sentence in enumerate(sentences(said)):
            kind = next((name for name, pattern in _KINDS if pattern.search(sentence)), "")
            if kind or (role == "assistant" and place == 0):
                made.setdefault(kind or "State", []).append(_cut(sentence))
        made["Files"] += _PATH.findall(said)
    made["Files"] = list(dict.fromkeys(made["Files"]))
    if not made.get("State") and messages:
        made["State"] = [_cut(messages[-1][1])]
    return made


def _previous(text: str, headings: Sequence[str]) -> dict[str, list[str]]:
    """The points of the summary that is to be updated; the latest request in it is no longer the latest."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:].strip()
        elif heading in headings and (point := line.removeprefix("- ").strip()) not in ("", "-"):
            found.setdefault(heading, []).append(point)
    found["Goal"] = [point for point in found.get("Goal", []) if not point.startswith("Latest request:")]
    return found


def _shorten(sections: dict[str, list[str]], words: int) -> None:
    """Leave out the oldest points of the longest section until it fits; the goal stays."""
    room = max(60, words * 4 // 5)
    while sum(len(point.split()) for points in sections.values() for point in points) > room:
        name = max((name for name in sections if name != "Goal"), key=lambda name: len(" ".join(sections[name])))
        if not sections[name]:
            return
        sections[name].pop(0)


def _inside(text: str, tag: str) -> str:
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end].strip() if 0 <= start < end else ""


def _cut(sentence: str) -> str:
    words = sentence.split()
    return " ".join(words) if len(words) <= _LONGEST else " ".join(words[:_LONGEST]) + " …"


def _listed(points: Sequence[str]) -> str:
    return "\n".join(f"- {point}" for point in points) or "-"
