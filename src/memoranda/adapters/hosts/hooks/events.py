"""The events of Claude Code by what we do about them."""

STARTS, PROMPT = "SessionStart", "UserPromptSubmit"
ANSWERED = frozenset({STARTS, PROMPT})
CAPTURES = frozenset({"Stop", "PreCompact", "SessionEnd"})
