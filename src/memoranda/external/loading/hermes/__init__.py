"""Compatibility with plugins that were written for Hermes: the modules that they import, and the home that they see.

This is no provider: `discovery` finds these plugins in the home, and `loader` loads them with what is offered here.
"""
