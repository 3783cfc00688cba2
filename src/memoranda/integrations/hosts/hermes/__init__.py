"""Memoranda as the memory provider of Hermes: the installation, and the plugin that Hermes loads."""
