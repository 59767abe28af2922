"""Whether a model is being traced for export."""

import torch


def exporting() -> bool:
    """Return whether `torch.export` or `torch.onnx.export` is running the model."""
    return torch.compiler.is_exporting() or torch.onnx.is_in_onnx_export()
