"""One test per capability of the memory design, through the public API and the command, over real files.

The details of each part are tested beside the part; a test here fails when a user would miss the capability as a whole.
`docs/explanation/capabilities.md` names the file of each.
"""
