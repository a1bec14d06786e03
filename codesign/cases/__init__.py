"""Replay of measured and reference cases through the model, and accuracy figures."""
