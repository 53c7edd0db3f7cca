"""The steps of the image, in a new virtual environment: install, find no torch, translate, serve, stop.

    python docker/check.py RUN "A sentence."

RUN is a Transformer; nothing is left behind but a converted model in RUN/engines.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent


def said(*command: object, environment: dict[str, str]) -> str:
    """What a command prints; its complaints end the check."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout.strip()


def main(run: str, text: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory() as folder:
        python, kente = (Path(folder) / "bin" / name for name in ("python", "kente"))
        said(sys.executable, "-m", "venv", folder, environment=environment)
        said("sh", HERE / "install.sh", python, environment=environment)
        there = json.loads(said(python, "-m", "pip", "list", "--format=json", environment=environment))
        names = {package["name"].lower() for package in there}
        assert "kente" in names and not names & {"torch", "sacrebleu", "jaxtyping"}, names
        print(f"{len(names)} packages, no torch: {', '.join(sorted(names))}")
        translated = said(kente, "translate", "-q", run, text, environment=environment)
        print(f"kente translate: {translated}")
        print(f"kente serve: {served([kente, 'serve', '-q', run, '--port', '0', '--json'], text, environment)}")


def served(command: list[object], text: str, environment: dict[str, str]) -> str:
    """What a server answers to the text; it is stopped by the signal that stops a container."""
    server = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"].rstrip("/")
        with urllib.request.urlopen(f"{address}/languages", timeout=60) as answer:
            source = json.load(answer)[0]
        asked = {
            "q": text,
            "source": source["code"],
            "target": next(c for c in source["targets"] if c != source["code"]),
        }
        request = urllib.request.Request(
            f"{address}/translate", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(json.load(answer)["translatedText"])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
