"""How much fits into a model: known context windows and answer lengths by the model's name.

Names change faster than releases of Memoranda, so these are patterns, a careful default, and a setting that wins.
"""

import re

DEFAULT_WINDOW = 128_000
_DEFAULT_ANSWER = 16_000

# The first pattern found in the name counts; a name may have a vendor before it, as in "anthropic/claude-sonnet-5".
_WINDOWS = tuple(
    (re.compile(pattern), window)
    for pattern, window in (
        (r"claude-(opus|sonnet|fable|mythos)-5|claude-opus-4[-.][678]|claude-sonnet-4[-.]6", 1_000_000),
        (r"claude-(2|instant)", 100_000),
        (r"claude", 200_000),
        (r"gpt-5[.]\d+-(mini|nano)", 400_000),
        (r"gpt-6|gpt-5[.][4-9]", 922_000),
        (r"gpt-5", 400_000),
        (r"gpt-4[.]1", 1_047_576),
        (r"gpt-4o|gpt-4-turbo|gpt-4-1106|gpt-4-0125|gpt-oss|chatgpt-4o", 128_000),
        (r"gpt-4-32k", 32_768),
        (r"gpt-4", 8_192),
        (r"gpt-3[.]5", 16_385),
        (r"(^|/)o[134](-|$)", 200_000),
        (r"gemini", 1_048_576),
        (r"gemma-?2", 8_192),
        (r"llama-?3(-|:|$)|llama-?2", 8_192),
        (r"mixtral|mistral-7b", 32_768),
        (r"phi-?3", 4_096),
        (r"kimi-k2|qwen3", 256_000),
    )
)
_ANSWERS = ((re.compile(r"claude-3-(opus|sonnet|haiku)|claude-(2|instant)"), 4_096), (re.compile(r"claude-3"), 8_192))


def context_window(name: str) -> int:
    """The context window of a model in tokens."""
    return next((window for pattern, window in _WINDOWS if pattern.search(name.lower())), DEFAULT_WINDOW)


def max_answer_tokens(name: str) -> int:
    """How many tokens to ask for where the service wants a number."""
    return next((tokens for pattern, tokens in _ANSWERS if pattern.search(name.lower())), _DEFAULT_ANSWER)
