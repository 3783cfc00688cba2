"""External memory: one provider that joins in, and everything that keeps it from hurting the conversation."""
