"""MCP for clients on other machines, a part of the HTTP service: the endpoint `/mcp`, its sessions, and OAuth 2.1."""
