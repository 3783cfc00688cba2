"""Kills, power cuts, failing disks and damaged files, in numbers: `make torture` runs them and prints the counts."""
