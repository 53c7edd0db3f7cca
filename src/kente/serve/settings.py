"""How the server is set up; every limit has a number."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from kente.errors import UsageError


@dataclass(frozen=True)
class Settings:
    """What `kente serve` was told, and what holds when it was told nothing."""

    host: str = "127.0.0.1"
    """Address to listen on; beyond this machine only with keys."""
    port: int = 5000
    """0 takes any that is free."""
    keys: Path | None = None
    """File of API keys, one a line; with it, whoever asks for work needs one."""
    rate: int = 0
    """Requests a minute for each key, or for each address where there are no keys; 0 is no limit."""
    characters: int = 20_000
    """Of all texts of one request together."""
    texts: int = 100
    """Of one request."""
    body_bytes: int = 1_000_000
    """Of one request without a file."""
    file_bytes: int = 2_000_000
    """Of one file."""
    looked_at: int = 1_000
    """Characters of a sentence to look into."""
    alternatives: int = 10
    """Beside the best translation of a text."""
    waiting: float = 2.0
    """Seconds of work that may wait; whatever comes on top is refused with 503."""
    deadline: float = 30.0
    """Seconds a request may take; then it is answered with 504. A file has twenty times as long."""
    receipt: float = 10.0
    """Seconds a request may take to arrive, and an answer to be taken; then the connection is cut."""
    idle: int = 5
    """Seconds a connection may rest between two requests."""
    connections: int = 1000
    """Open at once."""
    corrections: Path | None = None
    """Folder for what people teach, a TSV for each pair; without it, beside each run."""
    teachable: bool | None = None
    """Whether corrections are taken; None: only from this machine, unless a folder is named."""
    behind_proxy: bool = False
    """Whether a proxy on this machine tells the clients' addresses in X-Forwarded-For."""

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise UsageError(f"--port ({self.port}) must be between 0 and 65535")
        for name in ("characters", "texts", "body_bytes", "file_bytes", "connections", "idle"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} ({getattr(self, name)}) must be at least 1")
        for name in ("waiting", "deadline", "receipt"):
            if getattr(self, name) <= 0:
                raise UsageError(f"--{name} ({getattr(self, name)}) must be above 0 seconds")
        if self.waiting >= self.deadline:
            raise UsageError(
                f"--waiting ({self.waiting:g} s) must be below --deadline ({self.deadline:g} s): what waits so long would come too late"
            )
        if not self.on_loopback and self.keys is None:
            raise UsageError(
                f"--host {self.host} can be reached from other machines, and there are no API keys: name a file of them with --keys, "
                "or serve this machine alone with --host 127.0.0.1"
            )

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def takes_corrections(self) -> bool:
        if self.teachable is not None:
            return self.teachable
        return self.on_loopback or self.corrections is not None

    @property
    def file_deadline(self) -> float:
        return 20 * self.deadline
