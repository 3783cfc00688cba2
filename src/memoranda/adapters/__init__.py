"""Other people's protocols: what lets programs use a home that know nothing of it."""
