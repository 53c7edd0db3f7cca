"""A whole HTML document in one string: its style, its script and its icon inside it, and nothing fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import re
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kente.show.text import escaped, isolated

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="#16130d" d="M0 0h8v8H0z"/>'
    '<path fill="#e0a526" d="M0 0h4v2H0zM4 4h4v2H4z"/><path fill="#1f7a4d" d="M4 0h4v4H4zM0 6h4v2H0z"/>'
    '<path fill="#b3262a" d="M0 2h4v2H0zM4 6h4v2H4z"/></svg>'
)


@dataclass(frozen=True)
class Section:
    heading: str
    body: str
    """HTML: whoever makes it has escaped what is in it."""


def page(title: str, sections: Sequence[Section], *, lead: str = "", script: str = "", style: str = "") -> str:
    """The document. `lead` is HTML that stands below the title; `script` runs after the page's own, `style` adds to its own.

    The content security policy lets these two scripts run, by their hashes, and no other: whatever a token or a translation
    holds, it cannot become code.
    """
    scripts = [asset("page.js"), *([script] if script else [])]
    assert not any(re.search("</script", code, re.IGNORECASE) for code in scripts), "a script would end itself"
    anchors = _anchors([section.heading for section in sections])
    contents = "".join(
        f'<li><a href="#{anchor}">{isolated(section.heading)}</a></li>'
        for anchor, section in zip(anchors, sections, strict=True)
    )
    body = "".join(
        f'<section id="{anchor}"><h2>{isolated(section.heading)}</h2>{section.body}</section>'
        for anchor, section in zip(anchors, sections, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)}</title>\n"
        f'<link rel="icon" href="data:image/svg+xml,{urllib.parse.quote(ICON)}">\n'
        f"<style>\n{asset('page.css')}{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{isolated(title)}</h1>{lead}"
        + (f'<nav aria-label="Contents"><ul>{contents}</ul></nav>' if len(sections) > 1 else "")
        + f"</header>\n<main>\n{body}\n</main>\n"
        + "".join(f"<script>{code}</script>\n" for code in scripts)
        + "</body>\n</html>\n"
    )


@cache
def asset(name: str) -> str:
    """A file of this folder's assets."""
    return files("kente.show").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _anchors(headings: Sequence[str]) -> list[str]:
    """A name of ASCII letters for each heading, no two alike."""
    anchors: list[str] = []
    for place, heading in enumerate(headings):
        anchor = re.sub("[^a-z0-9]+", "-", heading.lower()).strip("-") or "section"
        anchors.append(f"{anchor}-{place}" if anchor in anchors else anchor)
    return anchors
