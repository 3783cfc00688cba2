"""The programs that Memoranda can be installed into: where they keep their settings, and how ours get in and out."""
