"""Numbers a reader can take home: embedded in the page as JSON, saved from there without the network."""

from __future__ import annotations

import math
from typing import Any

from kente.show.text import embedded_json, escaped


def download(value: Any, *, name: str, words: str) -> str:
    """A link with the text `words` that saves `value` as the file `name`. What is not a finite number becomes null."""
    identifier = f"numbers-{escaped(name)}"
    return (
        f'<p class="screen"><a hidden download="{escaped(name)}" data-numbers="{identifier}">{escaped(words)}</a>'
        "<noscript>Saving the numbers from this page needs JavaScript.</noscript></p>"
        f'<script type="application/json" id="{identifier}">{embedded_json(finite(value))}</script>'
    )


def finite(value: Any) -> Any:
    """The same value with null for every number JSON cannot write."""
    match value:
        case dict():
            return {str(key): finite(entry) for key, entry in value.items()}
        case list() | tuple():
            return [finite(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
    return value
