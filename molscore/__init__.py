"""molscore: molecular property prediction from SMILES with SCORE graph networks."""

from importlib.metadata import version as _version

__version__ = _version("molscore")
