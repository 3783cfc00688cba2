"""The tools and the memory of a home, offered to programs through any protocol: MCP today, HTTP next."""
