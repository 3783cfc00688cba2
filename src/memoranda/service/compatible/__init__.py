"""The API that is compatible with the client of mem0's platform.

It is a mount of the HTTP service (`memoranda server serve --compatible mem0`) and is tested with the official client.
The user of a request is that of its API key.
"""
