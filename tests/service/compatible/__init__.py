"""The compatible API over a real socket, with the official clients where a test is marked slow."""
