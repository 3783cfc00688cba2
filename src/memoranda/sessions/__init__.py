"""L2, the truth: every message of every conversation, as it was said."""
