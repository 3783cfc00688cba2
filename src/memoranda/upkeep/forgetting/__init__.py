"""Forgets a text, a conversation, an entry or a user: everywhere in a home, with a proof that nothing is left."""
