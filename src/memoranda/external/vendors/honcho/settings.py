"""The settings of Honcho, under the names that its configuration files use."""

from memoranda.external.loading.setup import ConfigField
from memoranda.external.settings import MODES
from memoranda.external.vendors.honcho.client import MAX_MESSAGE_CHARS, REASONING_LEVELS
from memoranda.external.vendors.vendor_settings import ALLOW_HTTP, RECALL_LIMIT, TIMEOUT

CLOUD = "https://api.honcho.dev"

FIELDS = (
    ConfigField(
        "baseUrl", "Address of the server; your own one, or Honcho's cloud", default=CLOUD, env_var="HONCHO_BASE_URL"
    ),
    ConfigField(
        "api_key",
        "API key; a server of your own without authentication needs none",
        secret=True,
        url="https://app.honcho.dev",
        env_var="HONCHO_API_KEY",
    ),
    ConfigField("workspace", "Workspace: letters, digits, - and _", default="memoranda"),
    ConfigField("peerName", "Peer of this home's owner; empty: the name of the profile", default=""),
    ConfigField("aiPeer", "Peer of the assistant of this home's owner; empty: one made from the user's", default=""),
    ConfigField(
        "sessionStrategy",
        "One session at Honcho for each session here (per-session), or one for all (global)",
        default="per-session",
        choices=("per-session", "global"),
    ),
    ConfigField(
        "observationMode",
        "directional: user and assistant each observe the other; unified: only the user is modelled",
        default="directional",
        choices=("directional", "unified"),
    ),
    ConfigField(
        "recallMode",
        "Recall before each turn (context), tools for the model (tools), or both (hybrid)",
        default="hybrid",
        choices=MODES,
    ),
    ConfigField("contextTokens", "Limit of recalled text in tokens; 0: only the common limit", default=0, minimum=0),
    ConfigField("contextCadence", "Turns from one request for context to the next", default=1, minimum=1),
    ConfigField(
        "injectionFrequency",
        "Show context every turn, or only in the first turn of a session",
        default="every-turn",
        choices=("every-turn", "first-turn"),
    ),
    ConfigField(
        "dialecticCadence",
        "Turns from one question to Honcho's model to the next; 0: never. Each costs tokens at the server",
        default=1,
        minimum=0,
    ),
    ConfigField("dialecticDepth", "Calls of the model per question", default=1, minimum=1, maximum=3),
    ConfigField("dialecticReasoningLevel", "How much it reasons", default="low", choices=REASONING_LEVELS),
    ConfigField("reasoningHeuristic", "Reason more about long messages", default=True),
    ConfigField("reasoningLevelCap", "The most that long messages may cost", default="high", choices=REASONING_LEVELS),
    ConfigField("dialecticMaxChars", "Limit of an answer in recalled text", default=600, minimum=50, maximum=4_000),
    ConfigField(
        "messageMaxChars",
        "Longer messages are sent in parts",
        default=MAX_MESSAGE_CHARS,
        minimum=500,
        maximum=MAX_MESSAGE_CHARS,
    ),
    ConfigField("saveMessages", "Send completed turns to Honcho", default=True),
    ALLOW_HTTP,
    RECALL_LIMIT,
    TIMEOUT,
)
