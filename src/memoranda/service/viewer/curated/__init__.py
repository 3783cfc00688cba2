"""Pages of curated memory: entries, history, the prompt, and what awaits a person."""
