"""Tests of MCP for remote clients."""
