"""Imports a Hermes home: the sessions of its `state.db`, its memories and its skills."""

from memoranda.importers.hermes.reader import Hermes

__all__ = ["Hermes"]
