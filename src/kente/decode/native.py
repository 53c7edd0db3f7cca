"""The search in C (native/search.c), compiled once for this very processor by the C compiler there is, and kept in the user's cache.

Where there is no compiler, or it fails, `library` says why, and the other engines go on as they do.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_float, c_int, c_void_p
from pathlib import Path

from kente.errors import KenteError
from kente.runs import processor

FOLDER = Path(__file__).parent / "native"
SOURCES = ("search.c", "network.h", "rounded.h", "products.h")
FLAGS = ("-std=gnu11", "-O3", "-fno-math-errno", "-shared", "-fPIC")
FOR_THIS = {"x86_64": ("-march=native", "-mprefer-vector-width=512"), "AMD64": ("-march=native",)}
"""By machine: code for the processor at hand. 512 bits are used where there are any; compilers shy away from them by themselves."""
ELSEWHERE = ("-mcpu=native",)
SECONDS = 120
"""A compiler that takes longer is given up."""
HOURS = 6
"""How long a compiler that failed is not tried again: what it missed may be installed some day."""
PASSING = (
    *("Killed", "Terminated signal", "Interrupt signal", "No space left", "quota exceeded", "Read-only file system"),
    *("Cannot allocate memory", "memory exhausted", "out of memory"),
)
"""In what a compiler says: it failed at the machine's state, which may be another a moment later, so that is not noted."""
CPUINFO = Path("/proc/cpuinfo")
ABILITIES = ("flags", "Features", "CPU implementer", "CPU part", "isa")
"""Lines of it that say what the processor can do: on x86, on ARM (where the maker and the design tell more), on RISC-V."""
NO_COMPILER = "there is no C compiler here (CC, cc, gcc or clang)"


class NativeMissing(KenteError):
    """Why the compiled search cannot be had here."""


class Shape(Structure):
    """As in native/network.h."""

    _fields_ = (
        *(
            (name, c_int)
            for name in (
                *("width", "heads", "inner", "encoder_layers", "decoder_layers", "source_words", "target_words"),
                *("longest", "pre", "rms", "activation", "gated", "rounded"),
            )
        ),
        ("epsilon", c_float),
        ("scale", c_float),
    )


class Questions(Structure):
    """As in native/search.c."""

    _fields_ = (
        *((name, c_int) for name in ("sentences", "beam", "keep", "no_repeat", "eos", "bos", "longest")),
        ("power", c_float),
        *(
            (name, c_void_p)
            for name in (
                *("source", "source_starts", "prefix", "prefix_starts", "caps", "guarded", "loop_runs", "never"),
            )
        ),
        ("nevers", c_int),
        ("table", c_void_p),
        ("always", c_void_p),
        *((name, c_int) for name in ("depth", "deep", "alwayses")),
    )


class Answers(Structure):
    """As in native/search.c."""

    _fields_ = tuple((name, c_void_p) for name in ("ids", "lengths", "flags", "totals", "scores"))


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled search; NativeMissing, with the reason, where there is none."""
    compiler = _compiler()
    if compiler is None:
        raise NativeMissing(NO_COMPILER)
    path = _path(compiler)
    loaded = _loaded(path)
    if loaded is None:  # not there yet, or torn by a crash
        loaded = _made(compiler, path)
    loaded.kente_model.restype = c_void_p
    loaded.kente_model.argtypes = [POINTER(Shape), POINTER(c_void_p)]
    loaded.kente_free.restype = None
    loaded.kente_free.argtypes = [c_void_p]
    loaded.kente_can_round.restype = c_int
    loaded.kente_can_round.argtypes = []
    loaded.kente_search.restype = c_int
    loaded.kente_search.argtypes = [c_void_p, POINTER(Questions), POINTER(Answers), POINTER(c_int)]
    return loaded


def can_round() -> bool:
    """Whether the compiled search multiplies whole numbers (int8) here, faster than float32; not where it cannot be had at all."""
    try:
        return bool(library().kente_can_round())
    except NativeMissing:
        return False


def _made(compiler: Sequence[str], path: Path) -> ctypes.CDLL:
    """Compiled and loaded. What went wrong is noted beside it, so that not every process waits for the same failure."""
    note = path.with_suffix(".failed")
    if said := _noted(note):
        raise NativeMissing(said)
    failure = _compile(compiler, path)
    loaded = None if failure else _loaded(path)
    if loaded is None:
        failure = failure or f"what {shlex.join(compiler)} made cannot be loaded"
        with contextlib.suppress(OSError):
            note.write_text(failure, encoding="utf-8")
        raise NativeMissing(failure)
    return loaded


def _noted(note: Path) -> str:
    """What failed here lately, and how it is tried again; or nothing."""
    try:
        recent = time.time() - note.stat().st_mtime < HOURS * 3600
        said = note.read_text(encoding="utf-8") if recent else ""
    except OSError:
        return ""
    return said and f"{said} (not tried again for {HOURS} hours, or until {note} is removed)"


def _loaded(path: Path) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


def why_no_compiler() -> str | None:
    """None where there is a compiler; otherwise what to say."""
    return NO_COMPILER if _compiler() is None else None


def why_not_compiled() -> str | None:
    """What a compiler failed at here lately, where that is noted and there is nothing that can be loaded; nothing is compiled."""
    compiler = _compiler()
    if compiler is None:
        return None
    path = _path(compiler)
    said = _noted(path.with_suffix(".failed"))
    return said if said and _loaded(path) is None else None


def _compiler() -> list[str] | None:
    """How the command begins that compiles: CC may hold several words."""
    try:
        asked = shlex.split(os.environ.get("CC", ""))
    except ValueError:  # a quotation mark without its other one
        return None
    found = ((shutil.which(name), rest) for name, *rest in ([asked] if asked else [["cc"], ["gcc"], ["clang"]]))
    return next(([path, *rest] for path, rest in found if path), None)


def _path(compiler: Sequence[str]) -> Path:
    return _home() / f"search-{_identity(compiler)}.so"


def _home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "kente" / "native"


def _flags() -> tuple[str, ...]:
    return (*FLAGS, *FOR_THIS.get(platform.machine(), ELSEWHERE))


def abilities() -> str:
    """Stands for what this processor can do: its name may be that of others that cannot."""
    with contextlib.suppress(OSError):
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
        said = sorted({line for line in lines if line.partition(":")[0].strip() in ABILITIES})
        if said:
            return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]
    return " ".join((platform.processor(), platform.machine(), platform.version()))


def _identity(compiler: Sequence[str]) -> str:
    """Stands for everything the library is made from and for: home folders may be shared by several machines."""
    made_from = [(FOLDER / name).read_bytes() for name in SOURCES]
    machine = processor(), abilities(), platform.machine()
    made_for = repr(([*compiler], os.stat(compiler[0]).st_mtime_ns, _flags(), *machine))
    return hashlib.sha256(b"\0".join([*made_from, made_for.encode()])).hexdigest()[:16]


def _compile(compiler: Sequence[str], path: Path) -> str | None:
    """Under another name first: two processes may do this at once. What the compiler failed at; NativeMissing where the machine did."""
    part = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
    name = shlex.join(compiler)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.touch()  # where that fails, it is not for the compiler to say so
        code, said = _run([*compiler, *_flags(), str(FOLDER / SOURCES[0]), "-o", str(part), "-lm"])
        if code < 0:
            raise NativeMissing(f"{name} was ended by {_signal(-code)}; the next process tries again")
        if code:
            failure = f"{name} could not compile it: {_complaint(said)}"
            if any(words in said for words in PASSING):
                raise NativeMissing(f"{failure}; the next process tries again")
            return failure
        os.replace(part, path)
        return None
    except subprocess.TimeoutExpired:
        return f"{name} took more than {SECONDS} s to compile it"
    except OSError as error:
        raise NativeMissing(f"it could not be compiled into {path.parent}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _run(command: Sequence[str]) -> tuple[int, str]:
    """(exit code, standard error, in English) of a command in a session of its own: Ctrl-C is for us, and if we wait no longer, all of it ends."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=SECONDS)[1]
        except BaseException:
            with contextlib.suppress(OSError, AttributeError):  # it has ended, or this system has no groups
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
    return process.returncode, said


def _complaint(said: str) -> str:
    """The line of a compiler's many that tells what is wrong."""
    lines = said.strip().splitlines() or ["it said nothing"]
    return next((line for line in lines if "error" in line.lower()), lines[0])


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
