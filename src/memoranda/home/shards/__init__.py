"""Users of a fleet on several PostgreSQL servers: which server has whose data, and how users move between them."""
