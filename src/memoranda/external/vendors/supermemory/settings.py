"""The settings of the provider for Supermemory, under the names that its users know, and the name of a container."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memoranda.errors import PermanentProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.peer_names import encode_name
from memoranda.external.vendors.vendor_scope import VendorScope
from memoranda.external.vendors.vendor_settings import ALLOW_HTTP, MODE, TIMEOUT

_MAX_CONTAINER_CHARS = 100
_CONTAINER = re.compile(r"[A-Za-z0-9_.-]+")
_IDENTITY = "{identity}"

FIELDS = (
    ConfigField(
        "api_key", "API key", secret=True, required=True, env_var="SUPERMEMORY_API_KEY",
        url="https://console.supermemory.ai",
    ),
    ConfigField(
        "base_url", "Address of the service", default="https://api.supermemory.ai", env_var="SUPERMEMORY_BASE_URL"
    ),
    ConfigField(
        "api_version", "Interface of the service: that of client 5 (v5), of client 3 (v4), or ask the service (auto)",
        default="auto", choices=("auto", "v5", "v4"),
    ),
    ALLOW_HTTP,
    ConfigField(
        "container_tag", "Name of a user's container; {identity} stands for profile and user",
        default="memoranda_{identity}", env_var="SUPERMEMORY_CONTAINER_TAG",
    ),
    MODE,
    ConfigField("auto_recall", "Recall before each turn", default=True),
    ConfigField("auto_capture", "Store each turn", default=True),
    ConfigField(
        "capture_mode", "Store each turn when it is complete (all), or one conversation when a session ends (session)",
        default="all", choices=("all", "everything", "session"),
    ),
    ConfigField("max_recall_results", "Maximum number of results per turn", default=10, minimum=1, maximum=20),
    ConfigField("profile_frequency", "Recall the profile every so many turns", default=50, minimum=1, maximum=500),
    ConfigField(
        "search_mode", "What to search: memories, documents (passages of what was stored), or both (hybrid)",
        default="hybrid", choices=("hybrid", "memories", "documents"),
    ),
    ConfigField("entity_context", "What Supermemory should know about the user, at most 1,500 characters", default=""),
    ConfigField("enable_custom_container_tags", "Let the model choose among more containers", default=False),
    ConfigField("custom_containers", "Names of these containers, separated by commas", default=""),
    ConfigField("custom_container_instructions", "When the model should use which of them", default=""),
    replace(TIMEOUT, key="api_timeout", default=10.0, minimum=0.5),
)  # fmt: skip


def container_name(scope: VendorScope, settings: Mapping[str, Any], custom: str = "") -> str:
    """The container of a user, or one of the user's others. Users and profiles never get the same one by default.

    A name without `{identity}` belongs to the owner of the home; other users get it with `__<user>` added. Raises
    PermanentProviderError for a name that Supermemory does not accept.
    """
    template = custom or str(settings["container_tag"])
    if _IDENTITY in template:
        room = _MAX_CONTAINER_CHARS - len(template) + len(_IDENTITY)
        name = template.replace(_IDENTITY, scope.peer(max_chars=room, keep=""))
    else:
        name = f"{template}__{encode_name(scope.user_id, keep='')}" if scope.user_id else template
    if not _CONTAINER.fullmatch(name) or len(name) > _MAX_CONTAINER_CHARS:
        raise PermanentProviderError(
            f"supermemory: {name[:60]!r} cannot be a container: only letters, digits, '_', '-' and '.', "
            f"and at most {_MAX_CONTAINER_CHARS} characters. 'memoranda provider setup supermemory' sets container_tag."
        )
    return name


def custom_containers(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The other containers that the model may choose; empty unless they are enabled."""
    if not settings["enable_custom_container_tags"]:
        return ()
    value = settings["custom_containers"]
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(name for part in parts if (name := str(part).strip()))


def owns_container(settings: Mapping[str, Any]) -> bool:
    """Whether the container has a name that only Memoranda gives, so that all of its content is ours."""
    return str(settings["container_tag"]) == "memoranda_{identity}"
