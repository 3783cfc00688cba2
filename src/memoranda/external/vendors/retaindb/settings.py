"""The settings of RetainDB, under the names of its variables."""

from collections.abc import Mapping
from typing import Any

from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.vendor_scope import VendorScope
from memoranda.external.vendors.vendor_settings import ALLOW_HTTP, COMMON_FIELDS

CLOUD = "https://api.retaindb.com"

FIELDS = (
    ConfigField(
        "api_key",
        "API key; RetainDB's local program needs none",
        secret=True,
        env_var="RETAINDB_API_KEY",
        url="https://www.retaindb.com/dashboard",
    ),
    ConfigField(
        "base_url",
        "Address: the cloud, a server of yours, or http://localhost:3111 for the local program",
        default=CLOUD,
        env_var="RETAINDB_BASE_URL",
    ),
    ConfigField("project", "Project; empty for one that is named like the profile", env_var="RETAINDB_PROJECT"),
    ConfigField("agent_id", "Name of the agent that writes", default="memoranda"),
    ALLOW_HTTP,
    *COMMON_FIELDS,
)


def missing_key(settings: Mapping[str, Any]) -> str:
    """What to do if the cloud has no key; empty otherwise."""
    if settings["api_key"] or settings["base_url"].rstrip("/") != CLOUD:
        return ""
    return "api_key (RETAINDB_API_KEY) is not set. 'memoranda provider setup retaindb' asks for it."


def project_of(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The project of a user: one for the owner of each profile, and one for every other user.

    RetainDB may promote what one user said to the whole project, so users never share one.
    """
    default = "memoranda" if scope.profile == "default" else f"memoranda-{scope.profile}"
    project = str(settings.get("project") or default)
    return f"{project}--{scope.peer()}" if scope.user_id else project
