"""Memoranda in the memory slot of OpenClaw: the installation, and the plugin that OpenClaw loads."""
