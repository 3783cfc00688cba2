"""Imports a Hermes home: the sessions of its `state.db`, its memories and its skills."""
