"""What the README says about start-up, `kente check` and a million pairs, measured by running the commands.

    python benchmarks/foundations.py start RUN          cold start to first translation, median of 7
    python benchmarks/foundations.py check              time and peak memory of `kente check` on 1,010,245 pairs
    python benchmarks/foundations.py scale              time and peak memory of preparing 100,000 and 1,010,245 pairs and training 30 updates

The corpora are made by ebible/make_pairs.py in $KENTE_DATA (default ../shared/data); nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(os.environ.get("KENTE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def kente(*arguments: object) -> tuple[float, float]:
    """Run the command; (seconds, peak megabytes of it and its children so far)."""
    began = time.monotonic()
    command = [sys.executable, "-m", "kente", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def million(folder: Path, most: int | None = None) -> tuple[Path, Path]:
    """The scale corpus, or its beginning."""
    command = [
        sys.executable,
        str(DATA / "ebible" / "make_pairs.py"),
        str(folder / "big"),
        *([str(most)] if most else []),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "big.src", folder / "big.tgt"


def start(run: str) -> dict[str, object]:
    """From typing the command to reading the answer."""
    commands = {
        "first_translation_s": ("translate", run, "A man is good ."),
        "first_translation_torch_s": ("translate", run, "--engine", "torch", "A man is good ."),
        "help_s": ("--help",),
    }
    kente(*commands["first_translation_s"])  # the first one ever converts the model and measures
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(7):
        for name, command in commands.items():
            seconds[name].append(kente(*command)[0])
    return {name: round(statistics.median(some), 2) for name, some in seconds.items()}


def check() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = million(Path(folder))
        seconds, peak = kente("check", "--source", source, "--target", target)
        return {"pairs": sum(1 for _ in open(source, "rb")), "seconds": round(seconds, 1), "peak_mb": round(peak)}


def scale() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for most in (100_000, None):
            source, target = million(Path(folder), most)
            out = Path(folder) / "run"
            settings = ("--set", "train.validate_sentences=50", "--recipe", "tiny", "--force")
            seconds, peak = kente(
                "train", "--source", source, "--target", target, "--updates", 30, "--out", out, *settings
            )
            pairs = json.loads((out / "prepared.json").read_text())["cleaning"]["kept"]
            rows.append({"pairs": pairs, "seconds": round(seconds, 1), "peak_mb": round(peak)})
    return rows


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["start", run]:
            print(json.dumps(start(run)))
        case ["check"]:
            print(json.dumps(check()))
        case ["scale"]:
            print(json.dumps(scale()))
        case _:
            sys.exit(__doc__)
