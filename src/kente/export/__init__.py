"""Runs as other programs' models."""
