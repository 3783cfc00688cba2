"""APIs that are compatible with clients of other products: mem0's platform, LangGraph's store, OpenAI's conversations.

Each is a mount of the HTTP service (`memoranda server serve --compatible …`) and is tested with the official client.
The user of a request is that of its API key.
"""
