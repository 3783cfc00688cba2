"""Looks after curated memory by rules that can be explained: what is said twice, replaced, expired or lost."""
