"""The command line."""

from kente.cli.entry import main

__all__ = ["main"]
