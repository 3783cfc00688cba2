"""The settings of OpenViking."""

from dataclasses import replace

from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.vendor_settings import ALLOW_HTTP, MODE, RECALL_LIMIT, TIMEOUT

# The server maps a cosine of 0, which means unrelated, to 0.5.
_MIN_SCORE = 0.6
FIELDS = (
    ConfigField("endpoint", "Address of the server", default="http://127.0.0.1:1933", env_var="OPENVIKING_ENDPOINT"),
    ConfigField(
        "api_key",
        "Key of an OpenViking user; a server in the mode dev needs none",
        secret=True,
        env_var="OPENVIKING_API_KEY",
    ),
    ConfigField("account", "Account at the server", default="default", env_var="OPENVIKING_ACCOUNT"),
    ConfigField(
        "user",
        "User at the server; with a user's key, the key decides",
        default="default",
        env_var="OPENVIKING_USER",
    ),
    ConfigField(
        "agent",
        "Peer of the server's user that has the memories of this home; 'hermes' continues those of Hermes",
        default="",
        env_var="OPENVIKING_AGENT",
    ),
    ConfigField(
        "commit_sessions", "Have the server's model extract memories from a session that has ended", default=True
    ),
    ConfigField(
        "score_threshold",
        "Hits with a lower score are not recalled; unrelated ones have about 0.5",
        default=_MIN_SCORE,
        env_var="OPENVIKING_RECALL_SCORE_THRESHOLD",
        minimum=0,
        maximum=1,
    ),
    ConfigField(
        "recall_resources",
        "Recall documents before a turn, not only memories",
        default=False,
        env_var="OPENVIKING_RECALL_RESOURCES",
    ),
    ALLOW_HTTP,
    MODE,
    replace(RECALL_LIMIT, env_var="OPENVIKING_RECALL_LIMIT"),
    TIMEOUT,
)
