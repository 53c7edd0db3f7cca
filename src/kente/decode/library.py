"""CTranslate2 itself, imported without torch.

Its tools for conversion import torch wherever torch is installed, which takes seconds; Kente converts from numpy and has no use for that.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any


@functools.cache
def ctranslate2() -> Any:
    """The library; ImportError where it is not installed or does not run on this machine."""
    if "torch" in sys.modules or "ctranslate2" in sys.modules:
        return importlib.import_module("ctranslate2")
    sys.modules["torch"] = None  # type: ignore[assignment]  # what this holds None for cannot be imported
    try:
        return importlib.import_module("ctranslate2")
    finally:
        del sys.modules["torch"]
