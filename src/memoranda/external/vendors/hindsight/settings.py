"""The settings of the provider for Hindsight, under the names that its users know, and the name of a user's bank."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memoranda.errors import PermanentProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.hindsight.client import MAX_BANK_CHARS, RecallOptions
from memoranda.external.vendors.peer_names import encode_name
from memoranda.external.vendors.vendor_scope import VendorScope
from memoranda.external.vendors.vendor_settings import ALLOW_HTTP, MODE, RECALL_LIMIT, TIMEOUT

CLOUD = "https://api.hindsight.vectorize.io"
LOCAL = "http://localhost:8888"
_CONTEXT = "A conversation between a user and an AI assistant."

_TYPES = ("observation", "world", "experience")

FIELDS = (
    ConfigField(
        "mode", "Where Hindsight runs: cloud, or a server of yours (local_external)", default="cloud",
        choices=("cloud", "local_external"), env_var="HINDSIGHT_MODE",
    ),
    ConfigField(
        "api_url", "Address of the server", default=CLOUD, env_var="HINDSIGHT_API_URL",
        default_from={"field": "mode", "map": {"cloud": CLOUD, "local_external": LOCAL}},
    ),
    ConfigField(
        "api_key", "API key; the cloud requires one, a server of yours only if it was started with one", secret=True,
        env_var="HINDSIGHT_API_KEY", url="https://ui.hindsight.vectorize.io",
    ),
    ALLOW_HTTP,
    ConfigField("bank_id", "First part of the names of banks", default="memoranda", env_var="HINDSIGHT_BANK_ID"),
    ConfigField(
        "bank_id_template", "Name of a bank instead, with {profile}, {workspace}, {platform} and {user}", default=""
    ),
    replace(MODE, key="memory_mode"),
    RECALL_LIMIT,
    ConfigField(
        "recall_budget", "How thoroughly to search", default="mid", choices=("low", "mid", "high"),
        env_var="HINDSIGHT_BUDGET",
    ),
    ConfigField(
        "recall_prefetch_method", "What joins a turn: memories (recall), or also an answer that Hindsight's model "
        "wrote from them after the turn before (reflect)", default="recall", choices=("recall", "reflect"),
    ),
    ConfigField("recall_types", "Kinds of memories, separated by commas", default=",".join(_TYPES)),
    ConfigField("recall_max_tokens", "Maximum size of an answer", default=4096, minimum=1, maximum=100_000),
    ConfigField("recall_max_input_chars", "Maximum length of a query", default=800, minimum=10, maximum=8_000),
    ConfigField("recall_tags", "Only memories with these tags, separated by commas", default=""),
    ConfigField(
        "recall_tags_match", "How the tags must match", default="any",
        choices=("any", "all", "any_strict", "all_strict", "exact"),
    ),
    ConfigField("auto_recall", "Recall before each turn", default=True),
    ConfigField("auto_retain", "Store each turn", default=True),
    ConfigField(
        "retain_async", "Let Hindsight extract facts after it has accepted a turn; false waits for them", default=True
    ),
    ConfigField("retain_context", "What Hindsight's model learns about each turn", default=_CONTEXT),
    ConfigField("retain_tags", "Tags of each turn, separated by commas", default="", env_var="HINDSIGHT_RETAIN_TAGS"),
    ConfigField("retain_source", "Source in the metadata", default="memoranda", env_var="HINDSIGHT_RETAIN_SOURCE"),
    ConfigField(
        "observation_scopes", "Which memories are consolidated together; shared: those of all sessions",
        default="shared", choices=("shared", "combined", "per_tag", "all_combinations"),
        env_var="HINDSIGHT_RETAIN_OBSERVATION_SCOPES",
    ),
    ConfigField("retain_user_prefix", "Name of the user", default="User", env_var="HINDSIGHT_RETAIN_USER_PREFIX"),
    ConfigField(
        "retain_assistant_prefix", "Name of the assistant", default="Assistant",
        env_var="HINDSIGHT_RETAIN_ASSISTANT_PREFIX",
    ),
    ConfigField("bank_mission", "What reflect should consider, in a sentence", default=""),
    ConfigField("bank_retain_mission", "What is worth extracting, in a sentence", default=""),
    replace(TIMEOUT, env_var="HINDSIGHT_TIMEOUT", default=50.0),
)  # fmt: skip


def split_list(value: Any) -> tuple[str, ...]:
    """The parts of a setting that is a list, or text with commas."""
    parts = value if isinstance(value, list | tuple) else str(value or "").split(",")
    return tuple(text for part in parts if (text := str(part).strip()))


def recall_options(settings: Mapping[str, Any]) -> RecallOptions:
    """How to recall; raises PermanentProviderError for a type that Hindsight does not have."""
    if unknown := set(split_list(settings["recall_types"])) - set(_TYPES):
        raise PermanentProviderError(
            f"hindsight: recall_types has {min(unknown)!r}, but may contain only {', '.join(_TYPES)}. "
            "'memoranda provider setup hindsight' sets it."
        )
    return RecallOptions(
        budget=settings["recall_budget"],
        max_tokens=settings["recall_max_tokens"],
        types=split_list(settings["recall_types"]),
        tags=split_list(settings["recall_tags"]),
        tags_match=settings["recall_tags_match"],
    )


def bank_name(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The bank of a user: different users and profiles never get the same one. Raises PermanentProviderError.

    A template that leaves `{user}` out is extended by it for every user but the owner of the home.
    """
    template = str(settings["bank_id_template"])
    if not template:
        prefix = f"{settings['bank_id']}-"
        return _checked(prefix + scope.peer(max_chars=MAX_BANK_CHARS - len(prefix.encode())))
    values = {
        "profile": scope.profile,
        "workspace": scope.facts.get("agent_workspace", ""),
        "platform": scope.platform,
        "user": scope.user_id,
    }
    _check_template(template, values)
    # A dash separates the parts, so it must not occur in them; `_owner` is no encoded name.
    encoded = {part: encode_name(value, keep="") for part, value in values.items()}
    encoded["user"] = encoded["user"] or "_owner"
    name = re.sub(r"\{(\w+)\}", lambda match: encoded[match[1]], template)
    if scope.user_id and "{user}" not in template:
        name += f"__{encode_name(scope.user_id, keep='')}"
    return _checked(name)


def _check_template(template: str, values: Mapping[str, str]) -> None:
    names = re.findall(r"\{(\w*)\}", template)
    if unknown := [name for name in names if name not in values]:
        known = ", ".join(f"{{{name}}}" for name in values)
        raise PermanentProviderError(f"hindsight: bank_id_template has {{{unknown[0]}}}, but may contain only {known}.")
    between = re.split(r"\{\w+\}", template)[1:-1]
    if any("-" not in text for text in between):
        raise PermanentProviderError(
            "hindsight: bank_id_template needs a dash between two placeholders, or users could share a bank."
        )


def _checked(name: str) -> str:
    if "/" in name or len(name.encode()) > MAX_BANK_CHARS:
        raise PermanentProviderError(
            f"hindsight: {name[:60]!r} cannot be the name of a bank: at most {MAX_BANK_CHARS} bytes and no slash."
        )
    return name
