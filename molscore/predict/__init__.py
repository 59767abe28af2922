"""From SMILES to predictions: engines, chunks, worker processes, streams.

Importing this package imports neither torch nor ONNX Runtime.
"""
