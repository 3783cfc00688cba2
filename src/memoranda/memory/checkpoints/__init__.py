"""Checkpoints of agent frameworks: opaque states of a graph, per user and thread, which no search reads."""
