"""Layers: tensors in, tensors out. No settings, no text, no files.

Letters in shapes: B batch, S source length, T target length, D width, H heads, K width per head, V vocabulary.
"""
