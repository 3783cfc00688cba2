"""External memory: one provider beside curated memory, and everything that protects the conversation from it."""
