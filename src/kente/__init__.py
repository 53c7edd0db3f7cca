"""Kente weaves one sequence into another: translators from two text files, on the machine you have."""

import os
from typing import Any

# Idle threads of torch sleep instead of spinning: beside one other busy program, spinning made training ten times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":  # imported on first use: torch takes seconds, `kente --version` should not
        from kente.api import load

        return load
    raise AttributeError(f"module 'kente' has no attribute {name!r}")
