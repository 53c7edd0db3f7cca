"""kill -9 a training at random moments, resume it each time, and compare its final weights with those of an unbroken run.

    python tests/faults/kill_resume.py 200

One process imports torch, then forks a child for every life of the training: kills are cheap, and 200 of them take minutes.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from kente import api
from kente.data.toys import toy

SETTINGS = (
    "tokenizer.kind=characters",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.width=32",
    "model.feedforward=64",
    "model.heads=2",
    "model.dropout=0.1",
    "batches.tokens=512",
    "batches.max_length=64",
    "train.validate_every=40",
    "train.log_every=5",
)
UPDATES = 120


def write_corpus(folder: Path) -> api.Data:
    pairs = toy("reverse", 600, seed=1)
    (folder / "source").write_text("".join(f"{source}\n" for source, _ in pairs))
    (folder / "target").write_text("".join(f"{target}\n" for _, target in pairs))
    return api.Data(folder / "source", folder / "target")


def live(data: api.Data, run: Path) -> None:
    """One life of the training: begin it, or go on with it, to the end if nobody kills us."""
    if (run / "request.json").exists():
        api.resume(run, threads=1)
    else:
        api.train(data, run, updates=UPDATES, save_every=4, seed=7, settings=SETTINGS, threads=1, force=True)


def child(data: api.Data, run: Path) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            live(data, run)
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return pid


def finish(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "an unbroken life of the training failed"


def main(kills: int, seed: int = 1) -> int:
    """Returns how many trainings ended with other weights than the unbroken one (0 is the promise)."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        data = write_corpus(Path(folder))
        began = time.monotonic()
        finish(child(data, Path(folder) / "unbroken"))
        whole = time.monotonic() - began
        wanted = api.info(Path(folder) / "unbroken")["weights_sha256"]
        killed = trainings = wrong = 0
        while killed < kills:
            run = Path(folder) / f"broken-{trainings}"
            lives = 0
            while killed < kills and lives < 20:
                pid = child(data, run)
                time.sleep(chance.uniform(0.0, 0.25) * whole)
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                if os.waitstatus_to_exitcode(status) == 0:  # it had finished: count the kills of another training
                    break
                killed, lives = killed + 1, lives + 1
            finish(child(data, run))
            seen = api.info(run)["weights_sha256"]
            trainings, wrong = trainings + 1, wrong + (seen != wanted)
            print(
                f"{killed} kills, {trainings} trainings, {wrong} with other weights than the unbroken run", flush=True
            )
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 20) else 0)
