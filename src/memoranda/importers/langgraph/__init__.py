"""LangGraph: threads from its checkpoints, and the items of its stores, in SQLite."""

from memoranda.importers.langgraph.reader import LangGraph

__all__ = ["LangGraph"]
