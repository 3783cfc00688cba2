"""The settings of Mem0, under the names that Hermes's plugin uses for them, and what they mean for the library."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memoranda.errors import PermanentProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.vendor import ALLOW_HTTP, COMMON_FIELDS

_OSS = {"deployment": "oss"}
_PLATFORM = {"deployment": "platform"}
_SERVER = {"deployment": "server"}
_MODEL_URLS = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434/v1"}
_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "nomic-embed-text": 768,
}
COLLECTION = "memoranda"

FIELDS = (
    ConfigField(
        "deployment",
        "Mem0's cloud (platform), a server of your own (server), or the library in this process (oss)",
        default="platform",
        choices=("platform", "server", "oss"),
        env_var="MEM0_MODE",
    ),
    ConfigField(
        "api_key",
        "API key of the platform",
        secret=True,
        required=True,
        env_var="MEM0_API_KEY",
        url="https://app.mem0.ai/dashboard/api-keys",
        when=_PLATFORM,
    ),
    ConfigField(
        "server_key", "API key of the server, if it asks for one", secret=True, env_var="MEM0_API_KEY", when=_SERVER
    ),
    ConfigField(
        "platform_url",
        "Address of the platform",
        default="https://api.mem0.ai",
        env_var="MEM0_PLATFORM_URL",
        when=_PLATFORM,
    ),
    ConfigField(
        "host",
        "Address of the server",
        default="http://localhost:8888",
        env_var="MEM0_HOST",
        required=True,
        when=_SERVER,
    ),
    replace(ALLOW_HTTP, when=_SERVER),
    ConfigField(
        "add_seconds",
        "Seconds that a delivery waits for the server and its model",
        default=300.0,
        minimum=1,
        maximum=3_600,
        when=_SERVER,
    ),
    ConfigField("user_id", "Mem0's id of the home's owner; empty for the profile's name", env_var="MEM0_USER_ID"),
    ConfigField(
        "agent_id",
        "Mark of what Memoranda wrote: agent_id, app_id at the platform",
        default="memoranda",
        env_var="MEM0_AGENT_ID",
    ),
    ConfigField("infer", "Let a model extract facts from each turn (no: store messages as they are)", default=True),
    ConfigField("min_score", "Recall nothing with a lower score", default=0.1, minimum=0, maximum=1),
    ConfigField(
        "rerank",
        "Order results with the platform's reranker, which is slower",
        default=False,
        when=_PLATFORM,
    ),
    ConfigField("oss_llm", "Model that extracts facts", default="openai", choices=("openai", "ollama"), when=_OSS),
    ConfigField(
        "oss_llm_url",
        "Address of the model (OpenAI-compatible)",
        default="https://api.openai.com/v1",
        default_from={"field": "oss_llm", "map": _MODEL_URLS},
        when=_OSS,
    ),
    ConfigField(
        "oss_llm_model",
        "Name of the model",
        default="gpt-5-mini",
        default_from={"field": "oss_llm", "map": {"openai": "gpt-5-mini", "ollama": "llama3.1"}},
        when=_OSS,
    ),
    ConfigField("oss_llm_key", "API key of the model", secret=True, env_var="OPENAI_API_KEY", when=_OSS),
    ConfigField("oss_embedder", "Embedder", default="openai", choices=("openai", "ollama"), when=_OSS),
    ConfigField(
        "oss_embedder_url",
        "Address of the embedder (OpenAI-compatible)",
        default="https://api.openai.com/v1",
        default_from={"field": "oss_embedder", "map": _MODEL_URLS},
        when=_OSS,
    ),
    ConfigField(
        "oss_embedder_model",
        "Name of the embedder",
        default="text-embedding-3-small",
        default_from={
            "field": "oss_embedder",
            "map": {"openai": "text-embedding-3-small", "ollama": "nomic-embed-text"},
        },
        when=_OSS,
    ),
    ConfigField(
        "oss_embedder_key",
        "API key of the embedder, if it is another one",
        secret=True,
        env_var="MEM0_EMBEDDER_KEY",
        when=_OSS,
    ),
    ConfigField(
        "oss_embedder_dims",
        "Length of the embedder's vectors; 0 if Mem0 knows the embedder",
        default=0,
        minimum=0,
        maximum=20_000,
        when=_OSS,
    ),
    ConfigField(
        "oss_vector",
        "Where the library stores memories: a folder (local), a Qdrant server, PostgreSQL",
        default="local",
        choices=("local", "qdrant", "pgvector"),
        when=_OSS,
    ),
    ConfigField("oss_vector_path", "Folder of the local store; empty for mem0/qdrant in the home", when=_OSS),
    ConfigField(
        "oss_vector_url",
        "Address of the Qdrant server, or postgresql://user:password@host/database",
        secret=True,
        env_var="MEM0_VECTOR_URL",
        when=_OSS,
    ),
    ConfigField("oss_vector_key", "API key of the Qdrant server", secret=True, env_var="MEM0_VECTOR_KEY", when=_OSS),
    *COMMON_FIELDS,
)


def address(settings: Mapping[str, Any]) -> str:
    """Where the memories are kept, for a person."""
    if settings["deployment"] == "platform":
        return str(settings["platform_url"])
    return str(settings["host"]) if settings["deployment"] == "server" else "in this process"


def library_config(settings: Mapping[str, Any], home: Path) -> dict[str, Any]:
    """The configuration of Mem0's library. Everything is explicit, so no variable of the environment changes it."""
    folder = home / "mem0"
    llm_key = settings["oss_llm_key"] or "unused"
    embedder_key = settings["oss_embedder_key"] or llm_key
    dimensions = settings["oss_embedder_dims"] or _DIMENSIONS.get(settings["oss_embedder_model"])
    if not dimensions:
        raise PermanentProviderError(
            f"Mem0 does not know how long the vectors of {settings['oss_embedder_model']} are. "
            "'memoranda provider setup mem0' sets oss_embedder_dims."
        )
    return {
        "version": "v1.1",
        "llm": {
            "provider": "openai",
            "config": {
                "api_key": llm_key,
                "openai_base_url": settings["oss_llm_url"],
                "model": settings["oss_llm_model"],
            },
        },
        "embedder": {
            "provider": "openai",
            "config": {
                "api_key": embedder_key,
                "openai_base_url": settings["oss_embedder_url"],
                "model": settings["oss_embedder_model"],
            },
        },
        "vector_store": _vector_store(settings, home, dimensions),
        "history_db_path": str(folder / "history.db"),
    }


def local_folder(settings: Mapping[str, Any], home: Path) -> Path:
    """The folder of the local store; a relative one is in the home, wherever the process was started."""
    return home / Path(settings["oss_vector_path"] or "mem0/qdrant").expanduser()


def _vector_store(settings: Mapping[str, Any], home: Path, dimensions: int) -> dict[str, Any]:
    common = {"collection_name": COLLECTION, "embedding_model_dims": dimensions}
    kind, url = settings["oss_vector"], settings["oss_vector_url"]
    if kind == "local":
        path = local_folder(settings, home)
        return {"provider": "qdrant", "config": {**common, "path": str(path), "on_disk": True}}
    if not url:
        raise PermanentProviderError("oss_vector_url is not set. 'memoranda provider setup mem0' asks for it.")
    if kind == "pgvector":
        return {"provider": "pgvector", "config": {**common, "connection_string": url}}
    if settings["oss_vector_key"]:
        return {"provider": "qdrant", "config": {**common, "url": url, "api_key": settings["oss_vector_key"]}}
    # Mem0 accepts an address without a key only in two parts.
    parts = urlsplit(url)
    server = {"host": parts.hostname, "port": parts.port or 6333, "https": parts.scheme == "https"}
    return {"provider": "qdrant", "config": {**common, **server}}
