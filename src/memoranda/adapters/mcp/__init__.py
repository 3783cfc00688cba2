"""A home as an MCP server: its tools and what is remembered, for every host that speaks the protocol.

It is written out here, without a library for it, because a host starts it with every session and waits for it.
"""
