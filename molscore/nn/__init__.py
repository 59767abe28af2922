"""The graph models: block families, readouts, heads and the model that joins them.

`config` and `registry` do not import torch, so the command line can read defaults and names
from them.
"""
