"""LibreTranslate's own server with one of our runs, exported as an Argos package, so that both serve the same weights.

It lives in an environment of its own, .bench/libretranslate, and keeps its packages there. Nothing is fetched but its Python packages.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks.environments import Environments, Peer
from benchmarks.serving import Target

PEER = Peer("libretranslate", "benchmarks.peers.libretranslate", "LibreTranslate")
CONNECTIONS = 80
"""Below the hundred that waitress, which serves it, takes at once: those beyond would wait for as long as the others are kept open."""
PATIENCE = 180.0
"""Seconds it may take to start."""


@contextlib.contextmanager
def libretranslate(run: Path, folder: Path) -> Iterator[Target]:
    """The server, started with as many threads as there are cores and no limits."""
    from kente.export.argos import export

    python = Environments(folder).python(PEER)
    home = folder / "libretranslate-home"
    shutil.rmtree(home, ignore_errors=True)
    package = next(export(run, home / "package").glob("*.argosmodel"))
    environment = os.environ | {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "ARGOS_PACKAGES_DIR": str(home / "packages"),
        "PYTHONPATH": "",
    }
    install = f"from argostranslate import package; package.install_from_path({str(package)!r})"
    subprocess.run([python, "-c", install], env=environment, check=True)
    port = _free_port()
    codes = package.stem.removeprefix("translate-").replace("_", ",")
    threads = str(len(os.sched_getaffinity(0)))
    command = [python.with_name("libretranslate"), "--host", "127.0.0.1", "--port", str(port), "--load-only", codes]
    command += ["--threads", threads]
    log = folder / "libretranslate.log"
    process = subprocess.Popen(command, stdout=open(log, "wb"), stderr=subprocess.STDOUT, env=environment)  # noqa: SIM115
    try:
        _wait(f"http://127.0.0.1:{port}/languages", process, log)
        yield Target("LibreTranslate", "127.0.0.1", port, process.pid, log, process, CONNECTIONS)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address, timeout=5).read()
            return
        time.sleep(0.5)
    sys.exit(f"LibreTranslate did not start; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}")
