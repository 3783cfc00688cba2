"""Search of past conversations: parses a query, finds and ranks conversations, and shows the messages that match."""
