"""Bytes that reach the disk: files and folders that survive a crash whole, and one clear message when there is no room."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kente.errors import DiskFull

PART = ".part-"  # opens the name of whatever is not finished yet, or about to go


def size_text(size: float) -> str:
    """1,234,567 -> "1.2 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def free_bytes(path: Path) -> int:
    """Room left on the disk that holds `path`, or would."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


@contextlib.contextmanager
def disk_errors(path: Path, size: int) -> Iterator[None]:
    """Turn "no space left" from anything inside into one message with the path, the bytes wanted and the bytes there are."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise DiskFull(
            f"no room to write {path}: it needs {size:,} bytes and {free_bytes(path):,} are free ({error.strerror}); "
            "what was saved before still stands. Free some space and resume"
        ) from error


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes) -> str:
    """Write a new file and bring it to the disk; returns its sha256."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(data).hexdigest()


def replace_file(path: Path, data: bytes) -> None:
    """Write or replace a file so that a reader, or the survivor of a crash, sees the old bytes or the new, never a mixture."""
    part = path.with_name(f"{PART}{path.name}-{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        with disk_errors(path, len(data)):
            write_file(part, data)
            os.replace(part, path)
            sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
