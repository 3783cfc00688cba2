"""L1, curated memory: `MEMORY.md` and `USER.md`, which the agent edits with one tool."""
