"""Zep: a graph of facts about each user, with the times at which they were true."""
