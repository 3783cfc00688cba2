"""The programs and frameworks that Memoranda is installed into, and the protocols they speak."""
