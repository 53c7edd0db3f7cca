"""Whole networks, one file each, readable top to bottom. They take tensors, never a Batch."""
