"""OpenViking: a context database with a tree of `viking://` files, served by the user's own server."""
