"""The doors for programs on other machines: the HTTP API, the viewer, remote MCP and the API for clients of mem0."""
