"""The record (L2): every session and every message of every conversation."""
