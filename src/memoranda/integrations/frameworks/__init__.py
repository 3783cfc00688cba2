"""Adapters for agent frameworks, one module each: the user imports it, and it needs the framework's own package.

An adapter holds no state: it translates between the framework's objects and an opened `Memory`. All share one notion of
a turn. What the user and the model say is recorded when the framework hands it over, before the next step. What is
recalled comes within a deadline or not at all, and is added to the new prompt only, so the prefix of the conversation
stays as it was.
"""
