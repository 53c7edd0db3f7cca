"""Kente weaves one sequence into another: translators from two text files, on the machine you have."""

import os
from typing import Any

if "OMP_WAIT_POLICY" not in os.environ:
    # Idle threads of torch spin only shortly before they sleep. Beside one other busy program, spinning as long as OpenMP does by
    # default makes training ten times slower; not spinning at all costs a third when alone (docs/log.md has the figures).
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":  # imported on first use: torch takes seconds, `kente --version` should not
        from kente.api import load

        return load
    raise AttributeError(f"module 'kente' has no attribute {name!r}")
