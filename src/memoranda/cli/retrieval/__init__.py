"""Commands that find what was said: search, recall, browse, and the index by meaning."""
