"""Training: K folds by R repeats of experts, trained apart, joined in one bundle.

`config` does not import torch, so the command line can read the defaults from it.
"""
