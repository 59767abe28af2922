"""Block families, one file each; see `molscore.nn.registry`."""
