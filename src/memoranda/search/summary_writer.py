"""Writes the summaries of search results with a chat model."""

from collections.abc import Callable

from memoranda.errors import ModelReplyError
from memoranda.models.model import ChatModel, Reply
from memoranda.models.tokens import estimate_text
from memoranda.search.summaries import cut_request
from memoranda.storage.files.fork_lock import ForkLock

# A summary has about 200 words; the rest is for models that think first.
_MAX_OUTPUT_TOKENS = 4_000
# What a request may take of the window; token counts are estimates.
_REQUEST_SHARE = 0.6


class SummaryWriter:
    """A `Summarize` function with a model that is set up by the first summary, so that other searches load none."""

    def __init__(self, set_up_model: Callable[[], ChatModel], deadline: float) -> None:
        """`set_up_model` may raise; then that summary fails. `deadline` is in seconds, for one call."""
        self._set_up_model = set_up_model
        self._deadline = deadline
        self._lock = ForkLock()
        self._model: ChatModel | None = None

    def __call__(self, instructions: str, text: str) -> str:
        """The summary; raises ModelError if there is none. Several threads may call this at once."""
        return self.ask(instructions, text).text

    def ask(self, instructions: str, text: str) -> Reply:
        """The summary with the tokens that it took."""
        with self._lock:
            if self._model is None:
                self._model = self._set_up_model()
            model = self._model
        tokens, room = estimate_text(text), int(model.window * _REQUEST_SHARE)
        if tokens > room:
            text = cut_request(text, len(text) * room // tokens)
        reply = model.reply(
            instructions,
            [{"role": "user", "content": text}],
            max_tokens=max(1, min(_MAX_OUTPUT_TOKENS, model.window // 4)),
            deadline=self._deadline,
        )
        if reply.finish_reason == "refusal":
            raise ModelReplyError("The model refused to write a summary.")
        return reply
