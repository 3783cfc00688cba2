"""The protocols that other programs speak, and the settings of the programs that Memoranda is installed into."""
