"""Sessions and items that come from elsewhere or go there: exports, imports, synchronised homes."""
