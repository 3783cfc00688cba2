"""Finds, installs, sets up and loads a provider, plugins of Hermes among them."""
