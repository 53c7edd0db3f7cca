"""augment: pairs made from text in one language alone, by a translator that is there already.

back  the translator goes from the target language to the source: its answer is the source, what a person wrote is the target
self  the translator goes the way the new one will: what a person wrote is the source, its answer is the target
      (Sennrich et al., 2016; He et al., 2020; tagged as in Caswell et al., 2019)

OUT.part grows line by line; .part-OUT.json says how far it is, and is replaced only when the lines before are on the disk. So a kill
costs a few hundred sentences, and the same command goes on.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from kente.api.loading import load
from kente.config import CleaningConfig
from kente.data.cleaning import CONTROL, EMPTY, TOO_LONG, Cleaner, Profile, has_control, is_blank
from kente.data.corpus import Corpus, Pair, read_lines
from kente.data.keys import Keys, Seen, contains, sentence_keys
from kente.data.splitting import held_out_keys
from kente.data.tags import BACK, SELF
from kente.decode.translator import SPLIT, Translator
from kente.durable import PART, disk_errors, file_sha256, replace_file
from kente.errors import Interrupted, RunError, UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.train.kinds import require
from kente.train.signals import StopRequest

TAGS = {"back": BACK, "self": SELF}
TOGETHER = 512
"""Lines translated between two marks on the disk."""
REPEATED, HELD_OUT = "seen before", "held out"


@dataclass(frozen=True)
class Augmented:
    """What became of a text."""

    out: Path
    kind: str
    tag: str
    read: int
    kept: int
    dropped: dict[str, int]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"out": str(self.out), "seconds": round(self.seconds, 1)}

    def lines(self) -> list[str]:
        tag = f"tagged {self.tag}" if self.tag else "without a tag"
        dropped = "".join(f"; dropped {number:,}: {reason}" for reason, number in self.dropped.items())
        return [f"{self.out}: {self.kept:,} pairs from {self.read:,} lines, {tag}{dropped}"]


@dataclass
class _State:
    """How far it is; on the disk after each part of the text."""

    asked: dict[str, Any]
    read: int = 0
    bytes: int = 0
    kept: int = 0
    seconds: float = 0.0
    dropped: dict[str, int] = field(default_factory=dict)
    profile: Profile | None = None

    def drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def save(self, path: Path) -> None:
        replace_file(path, (json.dumps(asdict(self), ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> _State:
        try:
            values = json.loads(path.read_bytes())
            profile = values.pop("profile")
            return cls(**values, profile=Profile(**profile) if profile else None)
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path} cannot be read: {error!r}; begin anew with --force") from None


def augment(
    run: Path | str,
    text: Sequence[Path | str],
    out: Path | str,
    *,
    kind: str = "back",
    tag: str | None = None,
    exclude: Sequence[Path | str] = (),
    limit: int | None = None,
    force: bool = False,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
    **decode: Any,
) -> Augmented:
    """Translate text in one language into pairs to train on, with the cleaning rules of the run; `decode` as for `load`.

    `tag` is put before each source ("" for none; by default the kind's own). Lines of the `exclude` files, such as test sets, are left
    out, and what the run validates on. Called again after an interruption it goes on where it was.
    """
    out, files, held_out = Path(out), [Path(path) for path in text], [Path(path) for path in exclude]
    if kind not in TAGS:
        raise UsageError(f"no kind of augmenting called {kind}; there are {' and '.join(TAGS)}")
    if out.suffix != ".tsv":
        raise UsageError(f"--out {out}: pairs are written as tab-separated lines; choose a name that ends in .tsv")
    tag = TAGS[kind] if tag is None else tag
    if len(tag.split()) > 1 or tag != tag.strip():
        raise UsageError(f"--tag {tag!r}: a tag is one word, such as {BACK}")
    opened = require(Run.open(run), "kente augment", "translation")
    asked: dict[str, Any] = {
        "kind": kind,
        "tag": tag,
        "limit": limit,
        "decode": {name: value for name, value in decode.items() if value is not None},
        "weights": opened.chosen(reporter).manifest["files"]["model.safetensors"]["sha256"],
        "text": [file_sha256(path) for path in _there(files)],
        "exclude": [file_sha256(path) for path in _there(held_out)],
    }
    part, mark = out.with_name(f"{out.name}.part"), out.with_name(f"{PART}{out.name}.json")
    state = _resumed(out, part, mark, asked, force)
    translator = load(run, device=device, threads=threads, reporter=reporter, **decode)
    worker = _Worker(opened, translator, kind, tag, _excluded(opened, held_out))
    began = time.monotonic() - state.seconds
    lines = itertools.islice(itertools.chain.from_iterable(map(read_lines, files)), limit)
    worker.pass_over(itertools.islice(lines, state.read))
    out.parent.mkdir(parents=True, exist_ok=True)
    with StopRequest() as stop, open(part, "ab") as file:
        while chunk := list(itertools.islice(lines, TOGETHER)):
            rows = worker.pairs(chunk, state)
            _write(file, part, rows)
            state.read, state.bytes = state.read + len(chunk), file.tell()
            state.kept, state.seconds = state.kept + len(rows), time.monotonic() - began
            state.save(mark)
            reporter.progress("translating", state.read, limit, f"{state.kept:,} pairs kept")
            if stop.received:
                again = "The same command without --force goes on" if force else "The same command goes on"
                raise Interrupted(f"{stop.received} after {state.read:,} lines: saved. {again}")
    reporter.finish()
    os.replace(part, out)
    mark.unlink(missing_ok=True)
    return Augmented(out, kind, tag, state.read, state.kept, dict(state.dropped), state.seconds)


def _there(paths: Sequence[Path]) -> Sequence[Path]:
    """The files, if each can be read to its end: a fault found hours later would cost the hours."""
    for path in paths:
        for _ in read_lines(path):
            pass
    return paths


def _resumed(out: Path, part: Path, mark: Path, asked: dict[str, Any], force: bool) -> _State:
    """Where an interrupted call stood, its file cut back to what is certain; or the beginning."""
    if force:
        for path in (part, mark):
            path.unlink(missing_ok=True)
    elif mark.exists() and part.exists():
        state = _State.load(mark)
        if state.asked != asked:
            raise UsageError(
                f"{part} was begun from another run, text or setting; finish it with those, or begin anew: --force"
            )
        os.truncate(part, state.bytes)
        return state
    elif out.exists():
        raise UsageError(f"{out} exists already; choose another name, or replace it: --force")
    part.unlink(missing_ok=True)
    return _State(asked)


def _excluded(run: Run, files: Sequence[Path]) -> Keys:
    """What must not be learned from: lines of the files, and the sources that the run is validated on."""
    held_out = Corpus("excluded", lambda: (Pair(line, "", 0) for path in files for line in read_lines(path)))
    folder = run.path / "data"
    known: list[Pair] = []
    if (folder / "validation.source").exists():
        known = list(Corpus.of_files(folder / "validation.source", folder / "validation.target"))
    return held_out_keys(held_out, known)


def _write(file: BinaryIO, path: Path, rows: list[tuple[str, str]]) -> None:
    data = "".join(f"{_cell(source)}\t{_cell(target)}\n" for source, target in rows).encode()
    with disk_errors(path, len(data)):
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _cell(text: str) -> str:
    return " ".join(text.replace("\t", " ").splitlines())


class _Worker:
    """Lines in, pairs out: what cannot be used is dropped before it costs time, what came out wrong afterwards."""

    def __init__(self, run: Run, translator: Translator, kind: str, tag: str, excluded: Keys) -> None:
        self.translator, self.kind, self.tag = translator, kind, tag
        self.excluded, self.seen = excluded, Seen()
        self.config: CleaningConfig = run.config.cleaning
        folder = run.path / "data"
        self.profile: Profile | None = None
        if (folder / "validation.source").exists():
            self.profile = Profile.of(Corpus.of_files(folder / "validation.source", folder / "validation.target"))

    def pass_over(self, lines: Iterator[str]) -> None:
        """These have been done; they only count as seen."""
        while chunk := list(itertools.islice(lines, TOGETHER)):
            self.seen.add(sentence_keys(line for line in chunk if self._fault(line) is None))

    def pairs(self, lines: list[str], state: _State) -> list[tuple[str, str]]:
        """(source, target) of the lines that are worth it."""
        usable = self._usable(lines, state)
        answers = self.translator.translate(usable)
        pairs = [Pair(line, answer.text, 0) for line, answer in zip(usable, answers, strict=True)]
        state.profile = state.profile or self.profile or Profile.of(pairs)
        judge = Cleaner(self.config, state.profile)
        kept = []
        for pair, answer in zip(pairs, answers, strict=True):
            wrong = [warning for warning in answer.warnings if warning != SPLIT]
            fault = wrong[0] if wrong else judge.fault(pair)
            if fault is None:
                kept.append(self._as_trained(pair))
            else:
                state.drop(fault)
        return kept

    def _usable(self, lines: list[str], state: _State) -> list[str]:
        sound = []
        for line in lines:
            fault = self._fault(line)
            if fault is None:
                sound.append(line)
            else:
                state.drop(fault)
        if not sound:
            return []
        keys = sentence_keys(sound)
        usable = []
        for line, new, held_out in zip(sound, self.seen.add(keys), contains(self.excluded, keys), strict=True):
            if new and not held_out:
                usable.append(line)
            else:
                state.drop(HELD_OUT if held_out else REPEATED)
        return usable

    def _fault(self, line: str) -> str | None:
        if is_blank(line):
            return EMPTY
        if has_control(line):
            return CONTROL
        return TOO_LONG if len(line.split()) > self.config.max_words else None

    def _as_trained(self, pair: Pair) -> tuple[str, str]:
        source, target = (pair.target, pair.source) if self.kind == "back" else (pair.source, pair.target)
        return (f"{self.tag} {source}" if self.tag else source), target
