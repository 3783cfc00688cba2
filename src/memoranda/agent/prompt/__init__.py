"""L0, the working context: the system prompt, built once per session from sections, those that change least first."""
