"""CTranslate2 itself, without torch.

The part of it that describes models imports torch wherever torch is installed, which takes seconds; Kente describes them in numpy.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def ctranslate2() -> Any:
    """The library; ImportError where it is not installed or does not run on this machine."""
    return importlib.import_module("ctranslate2")


def specifications() -> Any:
    """ctranslate2.specs, the shapes of models. Imported without torch, it is not left behind for others, who may want it with torch."""
    library = ctranslate2()
    if "torch" in sys.modules or "ctranslate2.specs" in sys.modules:
        return library.specs
    sys.modules["torch"] = None  # type: ignore[assignment]  # what this holds None for cannot be imported
    try:
        return library.specs
    finally:
        vars(library).pop("specs", None)
        for name in [name for name in sys.modules if name == "torch" or name.startswith("ctranslate2.specs")]:
            del sys.modules[name]
