"""The web viewer: pages that show and change one user's memory, on `memoranda view` and `memoranda server serve`."""
