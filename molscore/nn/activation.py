"""The activation all networks share."""

from typing import Final

SLOPE: Final = 0.01
"""Slope of the leaky ReLU below zero."""
