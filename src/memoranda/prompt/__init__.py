"""L0, the working context: the system prompt, put together once per session in sections that change ever faster."""
