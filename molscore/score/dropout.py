"""Dropout of the state, cheaper than `torch.nn.Dropout` on a CPU.

A Bernoulli draw per element took a sixth of a training step. Here one 64-bit draw serves eight
elements: its bytes are compared with a threshold, so the probability is a multiple of 1/256,
the nearest one to what was asked. The kept elements are scaled by the exact inverse of the
probability in use, so the expectation is unchanged.
"""

import torch
from torch import Tensor, nn


def dropped(h: Tensor, keep: Tensor | None) -> Tensor:
    """Return `h` times a mask of `StateDropout.mask`, or `h` itself without one."""
    return h if keep is None else h * keep


class StateDropout(nn.Module):
    """Set elements of a state to zero with probability `p` while training.

    Args:
        p: probability in [0, 1); rounded to the nearest multiple of 1/256.

    Shape: any; the output has the shape of the input.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout probability must be in [0, 1), got {p}")
        self.threshold = min(round(p * 256), 255)

    @property
    def p(self) -> float:
        """The probability in use."""
        return self.threshold / 256

    def mask(self, h: Tensor) -> Tensor | None:
        """Return what to multiply `h` with, 0 or 1/(1-p); None when nothing is dropped."""
        if not self.training or self.threshold == 0:
            return None
        n = h.numel()
        words = torch.empty((n + 7) // 8, dtype=torch.int64, device=h.device)
        # The full range of int64, so that all eight bytes are uniform.
        words.random_(-(2**63), None)
        keep = torch.empty(h.shape, dtype=h.dtype, device=h.device)
        torch.ge(words.view(torch.uint8)[:n].view(h.shape), self.threshold, out=keep)
        return keep.mul_(256 / (256 - self.threshold))

    def forward(self, h: Tensor) -> Tensor:
        """Return `h` with elements dropped (training) or `h` itself (evaluation)."""
        return dropped(h, self.mask(h))

    def extra_repr(self) -> str:
        """Show the probability in `print(model)`."""
        return f"p={self.p:g}"
