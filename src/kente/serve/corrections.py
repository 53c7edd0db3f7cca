"""What people teach: pairs of a sentence and its better translation, appended to a TSV that `kente train --corrections` mixes in."""

from __future__ import annotations

import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

from kente.durable import disk_errors, sync_folder
from kente.serve.refusals import Refusal
from kente.serve.translators import Pair

MOST_BYTES = 20_000_000
"""Of one file: beyond it, someone should look at what is being taught."""

_BREAKS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


class Corrections:
    """A file for each pair of languages: FOLDER/en-fr.tsv, or RUN/corrections.tsv where no folder is named."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = threading.Lock()

    def path(self, pair: Pair) -> Path:
        return pair.run / "corrections.tsv" if self.folder is None else self.folder / f"{pair}.tsv"

    def append(self, pair: Pair, source: str, target: str) -> None:
        """Add a line: source, target, time. It is on the disk when this returns."""
        path = self.path(pair)
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = f"{_one_line(source)}\t{_one_line(target)}\t{now}\n".encode()
        with self._lock, disk_errors(path, len(line)):
            new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a+b") as file:
                end = file.seek(0, os.SEEK_END)
                if end + len(line) > MOST_BYTES:
                    raise Refusal(
                        503, "no more corrections are taken: the file of them is full", why="corrections full"
                    )
                if end:
                    file.seek(end - 1)
                    if file.read(1) != b"\n":  # torn by a crash: what stands there is not ours to finish
                        line = b"\n" + line
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if new:
                sync_folder(path.parent)


def _one_line(text: str) -> str:
    return _BREAKS.sub(" ", text).strip()
