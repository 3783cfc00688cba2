"""OAuth 2.1 for the service, because hosted MCP clients accept nothing else.

A person approves a client on a page, with an API key; the client gets tokens that can do no more than that key, for
`/mcp` only, and that end with it. See `docs/decisions/mcp.md`.
"""
