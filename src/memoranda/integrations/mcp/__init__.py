"""An MCP server over the tool host, for every program that speaks the protocol.

It uses no MCP library, because a program starts it with every session and waits for it; see `docs/decisions/mcp.md`.
"""
