"""Pages about how memory works: what hooks recalled, what models cost, and the health of the home."""
