"""The peers, and the virtual environments they live in: one each, made on first use from pinned requirements."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


class PeerMissing(Exception):
    """A peer that cannot be had here; the message is what its row of the table says."""


@dataclass(frozen=True)
class Peer:
    """A program to be measured: the module of its adapter, what tables call it, and whether it shares Kente's environment."""

    name: str
    module: str
    title: str
    at_home: bool = False

    @property
    def requirements(self) -> Path:
        return HERE / "peers" / f"{self.name}.txt"


PEERS = {
    peer.name: peer
    for peer in (
        Peer("kente", "benchmarks.peers.kente_peer", "Kente", at_home=True),
        Peer("plain", "benchmarks.peers.plain", "plain torch", at_home=True),
        Peer("huggingface", "benchmarks.peers.huggingface", "transformers"),
        Peer("joeynmt", "benchmarks.peers.joeynmt", "JoeyNMT"),
        Peer("ctranslate2", "benchmarks.peers.ctranslate2", "CTranslate2"),
        Peer("marian", "benchmarks.peers.marian", "pymarian"),
        Peer("eole", "benchmarks.peers.eole", "eole"),
    )
}


class Environments:
    """Pythons to run peers with, under `folder`. What failed once in a run is not tried again in it."""

    def __init__(self, folder: Path, *, install: bool = True):
        self.folder, self.install = folder, install
        self._failed: dict[str, str] = {}

    def python(self, peer: Peer) -> Path:
        """The peer's Python, installed now if need be."""
        if peer.at_home:
            return Path(sys.executable)
        if peer.name in self._failed:
            raise PeerMissing(self._failed[peer.name])
        home = self.folder / peer.name
        wanted = hashlib.sha256(peer.requirements.read_bytes()).hexdigest()
        stamp = home / ".installed"
        if not (stamp.is_file() and stamp.read_text() == wanted):
            try:
                if not self.install:
                    raise PeerMissing("not installed here (a run without --quick installs it)")
                _make(home, peer)
            except PeerMissing as error:
                self._failed[peer.name] = str(error)
                raise
            stamp.write_text(wanted)
        return home / "bin" / "python"


def _make(home: Path, peer: Peer) -> None:
    """Every package is pinned, so none needs to be resolved: a peer that asks for another torch gets the one all others have."""
    shutil.rmtree(home, ignore_errors=True)
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", str(peer.requirements)]
    commands: list[list[str]] = [
        [sys.executable, "-m", "venv", str(home)],
        [str(home / "bin" / "python"), "-m", "pip", *install],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerMissing(f"cannot be installed: {last_line(done.stderr)}")


def last_line(text: str) -> str:
    """The line of an error that says most: the last one, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"
