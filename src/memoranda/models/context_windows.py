"""Context windows and maximum answer lengths of known models, by patterns of their names.

Model names change faster than Memoranda's releases, so unknown names get a cautious default. The setting
`model.window` overrides both.
"""

import re

DEFAULT_WINDOW = 128_000
_DEFAULT_ANSWER_TOKENS = 16_000

# The first matching pattern wins. A name may start with its vendor, as in "anthropic/claude-sonnet-5".
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
_ANSWER_TOKENS = (
    (re.compile(r"claude-3-(opus|sonnet|haiku)|claude-(2|instant)"), 4_096),
    (re.compile(r"claude-3"), 8_192),
)


def context_window(name: str) -> int:
    """The context window of the model in tokens."""
    return next((window for pattern, window in _WINDOWS if pattern.search(name.lower())), DEFAULT_WINDOW)


def max_answer_tokens(name: str) -> int:
    """The answer limit for services that require one."""
    return next((tokens for pattern, tokens in _ANSWER_TOKENS if pattern.search(name.lower())), _DEFAULT_ANSWER_TOKENS)
