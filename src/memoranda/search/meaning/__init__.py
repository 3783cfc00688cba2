"""Search by meaning, an extra: embedders, reranking by vectors, and an index of vectors.

Nothing here is imported unless `search.semantic` is on, and numpy only when a search needs it.
"""
