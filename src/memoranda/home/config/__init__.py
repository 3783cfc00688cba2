"""Configuration: `config.yaml` in the home, overrides from the environment, secrets in `.env`.

Each part of Memoranda owns a small settings class; one table of keys fills them in, and the reference documentation is
tested against that table. A file that cannot be read or contains an invalid value fails closed: nothing opens until it
is fixed.

Each name is loaded when it is first used, because a hook needs only the path of the home.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memoranda.home.config.config import KEYS as KEYS
    from memoranda.home.config.config import Config as Config
    from memoranda.home.config.config import Key as Key
    from memoranda.home.config.config import describe_unknown_key as describe_unknown_key
    from memoranda.home.config.config import find_key as find_key
    from memoranda.home.config.config import shown_value as shown_value
    from memoranda.home.config.config import value_of as value_of
    from memoranda.home.config.config_file import read_document as read_document
    from memoranda.home.config.config_file import set_value as set_value
    from memoranda.home.config.config_file import set_values as set_values
    from memoranda.home.config.config_file import unset_value as unset_value
    from memoranda.home.config.environment import colour_choice as colour_choice
    from memoranda.home.config.environment import directory_from_variable as directory_from_variable
    from memoranda.home.config.environment import editor_is_set as editor_is_set
    from memoranda.home.config.environment import is_set as is_set
    from memoranda.home.config.environment import locate_home as locate_home
    from memoranda.home.config.environment import service_url as service_url
    from memoranda.home.config.loader import load as load
    from memoranda.home.config.loader import record_location as record_location
    from memoranda.home.config.loader import server_url as server_url
    from memoranda.home.config.loader import store_urls as store_urls
    from memoranda.home.config.loader import vectors_base as vectors_base
    from memoranda.home.config.secrets import credentials as credentials
    from memoranda.home.config.secrets import export_secrets as export_secrets
    from memoranda.home.config.secrets import known_secrets as known_secrets
    from memoranda.home.config.secrets import lease_secrets as lease_secrets
    from memoranda.home.config.secrets import read_secrets as read_secrets
    from memoranda.home.config.secrets import remove_secret as remove_secret
    from memoranda.home.config.secrets import set_secret as set_secret

_NAMES = {
    "config": ("KEYS", "Config", "Key", "describe_unknown_key", "find_key", "shown_value", "value_of"),
    "config_file": ("read_document", "set_value", "set_values", "unset_value"),
    "environment": (
        "colour_choice",
        "directory_from_variable",
        "editor_is_set",
        "is_set",
        "locate_home",
        "service_url",
    ),
    "loader": ("load", "record_location", "server_url", "store_urls", "vectors_base"),
    "secrets": (
        "credentials",
        "export_secrets",
        "known_secrets",
        "lease_secrets",
        "read_secrets",
        "remove_secret",
        "set_secret",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULE_OF:
        raise AttributeError(f"module 'memoranda.home.config' has no attribute {name!r}")
    value = getattr(import_module(f"memoranda.home.config.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
