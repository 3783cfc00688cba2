"""The programs that Memoranda can be installed into: their settings files, and how our entries get in and out."""
