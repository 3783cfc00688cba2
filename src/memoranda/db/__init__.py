"""Opening, locking, retrying and upgrading databases, whatever tables are in them."""
