"""SVG to PNG, by a program that is there for it: letters of every script need fonts and shaping, which Kente does not carry."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from kente.errors import KenteError, UsageError

SCALE = 2
"""Pixels for each unit of the drawing."""
PATIENCE = 120.0
"""Seconds a program may take."""

Command = Callable[[str, Path, Path, int, int], list[str]]
"""(program, drawing, picture, width, height) -> what to run."""


def _browser(program: str, drawing: Path, picture: Path, width: int, height: int) -> list[str]:
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [
        program, "--headless", *sandbox, "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        f"--user-data-dir={drawing.parent / 'profile'}", f"--force-device-scale-factor={SCALE}",
        f"--window-size={width},{height}", f"--screenshot={picture}", drawing.as_uri(),
    ]  # fmt: skip


PROGRAMS: dict[str, Command] = {
    "rsvg-convert": lambda program, drawing, picture, *_: [
        program, f"--zoom={SCALE}", f"--output={picture}", str(drawing),
    ],
    "resvg": lambda program, drawing, picture, *_: [program, "--zoom", str(SCALE), str(drawing), str(picture)],
    "inkscape": lambda program, drawing, picture, *_: [
        program, str(drawing), f"--export-filename={picture}", f"--export-dpi={96 * SCALE}",
    ],
    "chromium": _browser,
    "chromium-browser": _browser,
    "google-chrome": _browser,
}  # fmt: skip


def png_of(svg: str) -> bytes:
    """The drawing as pixels, by the first of PROGRAMS that is installed."""
    name = next((name for name in PROGRAMS if shutil.which(name)), None)
    if name is None:
        raise UsageError(
            f"nothing here can draw PNG: install one of {', '.join(PROGRAMS)}, write SVG (--format svg), or open the page, which can save PNG"
        )
    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    assert size, "a drawing says how large it is"
    with tempfile.TemporaryDirectory() as folder:
        drawing, picture = Path(folder) / "drawing.svg", Path(folder) / "drawing.png"
        drawing.write_text(svg, encoding="utf-8")
        command = PROGRAMS[name](name, drawing, picture, int(size[1]), int(size[2]))
        try:
            done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise KenteError(f"{name} did not draw the picture within {PATIENCE:g} s; write SVG instead") from None
        if not picture.exists() or not picture.stat().st_size:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise KenteError(f"{name} did not draw the picture: {said[0]}; write SVG instead")
        return picture.read_bytes()
