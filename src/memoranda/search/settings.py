"""Settings of search: the size of answers, hidden sources, summaries, and search by meaning."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """`index` is `node` for one index of all users, or `user` for one file per user of a server, together of at most
    `index_directory_mb` megabytes. `answer_chars` limits one answer of the tool, as JSON text.

    `summary_model` is the name of the model that writes summaries; if empty, the model of the conversation does, or
    outside of one the configured model.

    `semantic_model` are the embedders of search by meaning: `wordllama`, `onnx:DIRECTORY`, `endpoint:MODEL`. The last
    needs `semantic_url`, and its key is in the variable `semantic_api_key_env`. `semantic_seconds` limits how long a
    search waits for them. `semantic_index` stores the vectors of all messages in a file.

    `rerank` compares the query with the first results one by one: `onnx:DIRECTORY` of a cross-encoder, or `model`, a
    chat model. With `expand` a chat model suggests further words for every query. Both models are at the service of
    the configured model; if their names are empty, that model itself.
    """

    index: str = "node"
    index_directory_mb: int = 10_000
    answer_chars: int = 16_000
    hidden_sources: tuple[str, ...] = ("tool", "subagent")
    summarize: bool = False
    summary_model: str = ""
    summary_workers: int = 3
    summary_deadline: float = 90.0
    semantic: bool = False
    semantic_model: tuple[str, ...] = ("wordllama",)
    semantic_url: str = ""
    semantic_api_key_env: str = "OPENAI_API_KEY"
    semantic_seconds: float = 2.0
    semantic_index: bool = False
    rerank: str = ""
    rerank_model: str = ""
    rerank_seconds: float = 10.0
    expand: bool = False
    expand_model: str = ""
    expand_seconds: float = 10.0

    @property
    def user_index_mb(self) -> int:
        """The limit for the indexes of single users; 0 if there is one index of all users."""
        return self.index_directory_mb if self.index == "user" else 0
