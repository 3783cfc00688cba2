"""The tools `skills_list`, `skill_view` and `skill_manage`, which answer a model with one JSON object each."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.errors import StorageError
from memoranda.memory.skills import change_history, guidance, refusals
from memoranda.memory.skills.skill_text import SKILL_FILE, has_front_matter, with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt, SkillRefusal, SkillWriteResult
from memoranda.safety.fence import screen_stored
from memoranda.support.origin import Origin, SourcesOf
from memoranda.support.tool import InvalidArgumentsError, JsonObject, Tool, own_tool, tool_refusal

_log = logging.getLogger(__name__)

ACTIONS = ("create", "patch", "edit", "write_file", "remove_file", "delete")
_SCREENED_FIELDS = frozenset({"content", "skills", "problems", "files"})
_MAX_LISTED = 200
_MAX_PROBLEMS = 20
_MAX_SHOWN_CHARS = 60_000
_NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}
VIEW_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": guidance.NAME},
        "file": {"type": "string", "description": guidance.FILE},
    },
    "required": ["name"],
}
MANAGE_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": guidance.ACTION},
        "name": {"type": "string", "description": guidance.NAME},
        "description": {"type": "string", "description": guidance.DESCRIPTION},
        "content": {"type": "string", "description": guidance.CONTENT},
        "old_text": {"type": "string", "description": guidance.OLD_TEXT},
        "new_text": {"type": "string", "description": guidance.NEW_TEXT},
        "file": {"type": "string", "description": guidance.FILE},
    },
    "required": ["action", "name"],
}


class SkillTools:
    """The tools of one session; their writes have its origin."""

    def __init__(self, store: SkillStore, origin: Origin, sources_of: SourcesOf | None = None) -> None:
        """`sources_of` says which untrusted text may have suggested the new texts of a call."""
        self._store = store
        self._origin = origin
        self._sources_of = sources_of

    def definitions(self) -> tuple[Tool, ...]:
        """The tools for a model: none when skills are switched off, only reading ones when only a person may write.

        They are screened: the store withholds suspicious passages, except those that a person has allowed.
        """
        settings = self._store.settings
        reading = (
            own_tool("skills_list", guidance.LIST, _NO_ARGUMENTS, self.list_skills, screened=True),
            own_tool("skill_view", guidance.VIEW, VIEW_PARAMETERS, self.view, screened=True),
        )
        writing = (own_tool("skill_manage", guidance.MANAGE, MANAGE_PARAMETERS, self.manage, screened=True),)
        return (*reading, *(writing if settings.agent_writes else ())) if settings.enabled else ()

    def list_skills(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Answer one call; never raises."""
        return _answer(self._list, arguments)

    def view(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Answer one call; never raises."""
        return _answer(self._view, arguments)

    def manage(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Answer one call; never raises."""
        return _answer(self._manage, arguments)

    def _list(self, arguments: Mapping[str, Any]) -> JsonObject:
        catalogue = self._store.catalogue()
        skills = [{"name": skill.name, "description": self._visible(skill.description)} for skill in catalogue.skills]
        problems = [f"{item.path.name} in {item.path.parent.name}: {item.problem}" for item in catalogue.problems]
        answer: JsonObject = {"success": True, "count": len(skills), "skills": skills[:_MAX_LISTED]}
        if not skills:
            answer["message"] = guidance.EMPTY
        # Folder names may be hostile, so problems are scanned like any other text.
        return answer | (
            {"problems": [self._visible(problem) for problem in problems[:_MAX_PROBLEMS]]} if problems else {}
        )

    def _view(self, arguments: Mapping[str, Any]) -> JsonObject:
        view = self._store.view(_text(arguments, "name"), _optional(arguments, "file") or SKILL_FILE)
        if isinstance(view, SkillRefusal):
            return describe(view)
        shown = view.shown.text
        answer: JsonObject = {
            "success": True, "name": view.skill.name, "file": view.file, "content": shown[:_MAX_SHOWN_CHARS],
            "files": [self._visible(file) for file in view.files], "path": str(view.skill.directory),
        }  # fmt: skip
        if len(shown) > _MAX_SHOWN_CHARS:
            answer["cut"] = f"{len(shown):,} characters; the first {_MAX_SHOWN_CHARS:,} are shown."
        return answer | ({"withheld": list(view.shown.findings)} if view.shown.passages else {})

    def _manage(self, arguments: Mapping[str, Any]) -> JsonObject:
        action = arguments.get("action")
        if action not in ACTIONS:
            raise InvalidArgumentsError(f"action must be one of {', '.join(ACTIONS)}, not {str(action)[:80]!r}.")
        return describe(self._change(str(action), _text(arguments, "name"), arguments))

    def _change(self, action: str, name: str, arguments: Mapping[str, Any]) -> SkillWriteResult:
        store, origin = self._store, self._origin
        # All of a skill tells the agent what to do, so nothing of it may come from elsewhere without a person.
        texts = [str(arguments[field]) for field in ("description", "content", "new_text") if arguments.get(field)]
        if self._sources_of and (sources := self._sources_of(texts or [name])):
            return refusals.untrusted(name, sources)
        if action == "create":
            return store.create(name, _whole_skill(name, arguments), origin)
        if action == "edit":
            return store.edit(name, _whole_skill(name, arguments), origin)
        if action == "patch":
            old_text, new_text = _text(arguments, "old_text"), _text(arguments, "new_text", blank=True)
            return store.patch(name, old_text, new_text, origin, _optional(arguments, "file") or SKILL_FILE)
        if action == "write_file":
            return store.write_file(name, _text(arguments, "file"), _text(arguments, "content"), origin)
        if action == "remove_file":
            return store.remove_file(name, _text(arguments, "file"), origin)
        return store.delete(name, origin)

    def _visible(self, text: str) -> str:
        return self._store.screen_text(text).text


def describe(outcome: SkillWriteResult) -> JsonObject:
    if isinstance(outcome, SkillReceipt):
        result: JsonObject = {
            "success": True, "skill": outcome.skill, "message": outcome.message, "stored_in": str(outcome.stored_in),
        }  # fmt: skip
        if outcome.change is not None:
            result |= {"change": outcome.change, "visible_from": guidance.VISIBLE_FROM}
        return result
    result = {"success": False, "skill": outcome.skill, "reason": outcome.reason, "error": outcome.message}
    return result | ({"findings": list(outcome.findings)} if outcome.findings else {})


def describe_log(store: SkillStore, skill: str | None, limit: int) -> list[JsonObject]:
    """The newest changes as data, newest first, with suspicious passages withheld."""
    return [
        {
            "number": change.number, "at": change.at, "skill": change.skill, "path": change.path,
            "action": change.action, "actor": change.actor, "session": change.session, "note": change.note,
            "refers_to": change.refers_to,
            "before": store.screen_text(change.edit.before, change.path).text if change.edit else "",
            "after": store.screen_text(change.edit.after, change.path).text if change.edit else "",
        }
        for change in change_history.log(store, skill)[-limit:][::-1]
    ]  # fmt: skip


def _answer(call: Callable[[Mapping[str, Any]], JsonObject], arguments: Any) -> JsonObject:
    try:
        if not isinstance(arguments, Mapping):
            raise InvalidArgumentsError(f"The arguments must be an object, not {type(arguments).__name__}.")
        answer = call(arguments)
        # Names and paths may be hostile too; the texts of skills are screened already, as far as a person allows them.
        paths = {name: value for name, value in answer.items() if name not in _SCREENED_FIELDS}
        screened: JsonObject = screen_stored(paths, source="skills").value
        return answer | screened
    except InvalidArgumentsError as error:
        return tool_refusal("invalid", f"{error} Nothing was changed.")
    except (StorageError, OSError) as error:
        return tool_refusal("storage", f"{error} Nothing was changed.")
    except Exception as error:
        # A tool promises to answer and never to raise, even when Memoranda has a bug.
        _log.exception("a skill tool failed")
        message = f"Skills failed unexpectedly ({type(error).__name__}: {error}). Continue without them."
        return tool_refusal("internal", message)


def _whole_skill(name: str, arguments: Mapping[str, Any]) -> str:
    """The text of a SKILL.md; a procedure that is sent with a description gets front matter."""
    content, description = _text(arguments, "content"), _optional(arguments, "description")
    return with_front_matter(name, description, content) if description and not has_front_matter(content) else content


def _text(arguments: Mapping[str, Any], name: str, *, blank: bool = False) -> str:
    text = arguments.get(name)
    if not isinstance(text, str):
        raise InvalidArgumentsError(f"{name} is missing." if text is None else f"{name} must be a string.")
    if not text and not blank:
        raise InvalidArgumentsError(f"{name} is empty.")
    return text


def _optional(arguments: Mapping[str, Any], name: str) -> str:
    text = arguments.get(name)
    if text is not None and not isinstance(text, str):
        raise InvalidArgumentsError(f"{name} must be a string.")
    return text or ""
