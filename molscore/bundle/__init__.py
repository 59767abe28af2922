"""One file per model: written, read without trust, and turned into ONNX.

A bundle holds no code: JSON, safetensors, and an ONNX graph that is scanned before anything
runs it. Importing this package imports neither torch nor ONNX Runtime.
"""
