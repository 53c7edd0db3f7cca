"""load: a run as a translator, with the engine that is fastest or the one asked for. Nothing here imports torch before it must."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.api.inputs import has_accelerator, has_torch, pick_device, thread_count, use_threads
from kente.config import DecodeConfig
from kente.configfile import apply
from kente.data.tokenizer import Tokenizers
from kente.decode.choice import NAMES
from kente.decode.choosing import Fastest, remembered
from kente.decode.conversion import Numbers, obstacle
from kente.decode.ctranslate2_engine import CTranslate2Engine
from kente.decode.engine import Engine
from kente.decode.engine_folder import EngineFolders
from kente.decode.library import ctranslate2
from kente.decode.native import NativeMissing, why_no_compiler, why_not_compiled
from kente.decode.native_engine import NativeEngine, Network
from kente.decode.native_engine import obstacle as native_obstacle
from kente.decode.translator import Translator
from kente.errors import RunError, UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.train.kinds import require

if TYPE_CHECKING:
    from kente.data.shortlist import Shortlist
    from kente.decode.torch_engine import TorchEngine

OFFERED = 100
"""Candidates for each source word where an engine decides about a shortlist by itself: with 50 one answer in six becomes another, with 100 one in eight to
twelve (docs/decisions/004)."""
OFFERED_NATIVE = (50, 3000)
"""The same for the compiled search, and frequent words for every sentence, which cost it little and leave nearly all answers as they were
(docs/decisions/016)."""
WITHOUT_TORCH = (
    "this needs torch, which is not installed here: without it Transformers are translated with, and neither drawn from at random nor "
    "looked into; `pip install torch` adds it"
)


def load(
    run: Path | str, *, device: str = "auto", threads: int | None = None, reporter: Reporter = SILENT, **settings: Any
) -> Translator:
    """The translator of a run: kente.load("runs/mine").translate(["Good morning."])[0].text

    `settings` are those of the [decode] section, such as beam=1, length_penalty=0.6 or engine="torch".
    """
    count = thread_count(threads)
    opened = require(Run.open(run), "translating", "translation")
    decode = apply(
        opened.config, {"decode": {name: value for name, value in settings.items() if value is not None}}
    ).decode
    checkpoint = opened.chosen(reporter)
    tokenizers = opened.tokenizers(checkpoint).speaking(decode.source_language, decode.target_language)
    require_languages(opened, tokenizers)
    shortlist = shortlist_of(opened, tokenizers, decode, reporter)

    @functools.cache
    def in_torch() -> TorchEngine:
        if not has_torch():
            raise UsageError(WITHOUT_TORCH)
        from kente.decode.torch_engine import TorchEngine

        use_threads(threads)
        where = pick_device(device)
        return TorchEngine(opened.model(checkpoint, where), where, shortlist)  # type: ignore[arg-type]  # build() makes Generators

    offered = offered_shortlist(opened, tokenizers, decode, reporter)
    folders = EngineFolders(opened, checkpoint, tokenizers, shortlist or offered)
    engine = _engine(opened, folders, decode, device, count, in_torch, reporter)
    return translator_with(engine, opened, tokenizers, decode, count)


def require_languages(run: Run, tokenizers: Tokenizers) -> None:
    """A model of many languages must be told which."""
    known = tokenizers.languages
    if known and not any(tokenizers.marks):
        raise UsageError(
            f"{run.path} translates between {len(known)} languages; say which: --from and --to, or decode.source_language and "
            f"decode.target_language. It has {', '.join(known[:12])}{' ...' if len(known) > 12 else ''}"
        )


def shortlist_of(
    run: Run, tokenizers: Tokenizers, decode: DecodeConfig, reporter: Reporter = SILENT
) -> Shortlist | None:
    """The words to weigh, where the settings ask for a shortlist."""
    return run.shortlist(tokenizers, reporter).first(decode.shortlist) if decode.shortlist > 0 else None


def offered_shortlist(
    run: Run, tokenizers: Tokenizers, decode: DecodeConfig, reporter: Reporter = SILENT
) -> Shortlist | None:
    """The words that an engine may weigh if it likes: where that is left to it, and training has left a shortlist that can be had."""
    if decode.shortlist >= 0 or not run.has_shortlist:
        return None
    try:
        return run.shortlist(tokenizers, reporter).first(OFFERED)
    except RunError as error:  # nobody asked for it
        reporter.warn(f"translating without a shortlist: {error}")
        return None


def _engine(
    run: Run,
    folders: EngineFolders,
    decode: DecodeConfig,
    device: str,
    threads: int,
    in_torch: Callable[[], TorchEngine],
    reporter: Reporter,
) -> Engine:
    if decode.engine == "torch":
        return in_torch()
    why = _why_not(run, device) or _no_folder(folders)
    fast = CTranslate2Engine(folders, folders.tokenizers, in_torch) if why is None else None
    why_native = _why_not_native(run, device)

    def native(numbers: Numbers) -> NativeEngine:
        network = Network(folders.config, run.arrays(folders.checkpoint), numbers)
        return NativeEngine(network, threads, fast, in_torch, folders.shortlist if decode.shortlist > 0 else None)

    def wide() -> Shortlist | None:
        offered = decode.shortlist < 0 and folders.shortlist is not None
        return run.shortlist(folders.tokenizers).first(*OFFERED_NATIVE) if offered else folders.shortlist

    if why_native is None and (decode.engine == "native" or (decode.engine == "auto" and fast is None)):
        try:
            return native("float32")
        except NativeMissing as error:
            why_native = str(error)
    if decode.engine == "native":
        raise UsageError(f"the native search cannot be the engine for {run.path}: {why_native}; --engine torch can")
    if fast is not None:
        auto, there = decode.engine == "auto", folders.shortlist is not None
        return Fastest(
            fast,
            folders,
            threads,
            consider_torch=auto and has_torch(),
            native=native if auto and why_native is None else None,
            native_shortlist=wide,
            shortlists=(False, True) if there and decode.shortlist < 0 else (there,),
            reporter=reporter,
        )
    if decode.engine == "ctranslate2":
        raise UsageError(f"CTranslate2 cannot be the engine for {run.path}: {why}; --engine torch can")
    because = _because(why, why_native)
    if not has_torch():
        raise UsageError(f"{run.path} needs torch, which is not installed here; `pip install torch` adds it. {because}")
    reporter.say(f"translating with torch; {because}")
    return in_torch()


def _because(why: str | None, why_native: str | None) -> str:
    """Why torch is left to translate; what keeps both of the others away is said once."""
    more = f"; nor can the native search: {why_native}" if why_native not in (None, why) else ""
    return f"CTranslate2 cannot: {why}{more}"


def engine_of(run: Run, device: str = "auto", threads: int | None = None) -> tuple[str, str]:
    """(the engine that translates with this run here, why it does). Nothing is converted or measured for it."""
    if run.config.decode.engine == "torch":
        return "torch", "the run's setting decode.engine asks for it"
    why = _why_not(run, device)
    if why is not None and run.config.decode.engine == "ctranslate2":
        return "none", f"the run's setting decode.engine asks for CTranslate2, which cannot: {why}"
    why_native = _why_not_native(run, device) or why_not_compiled()
    if run.config.decode.engine == "native":
        asked = "the run's setting decode.engine asks for the native search"
        return ("native", asked) if why_native is None else ("none", f"{asked}, which cannot: {why_native}")
    if why is not None:
        return ("torch", _because(why, why_native)) if why_native else ("native", f"CTranslate2 cannot: {why}")
    checkpoint = run.chosen()
    tokenizers = run.tokenizers(checkpoint)
    decode = run.config.decode
    shortlist = shortlist_of(run, tokenizers, decode) or offered_shortlist(run, tokenizers, decode)
    folders = EngineFolders(run, checkpoint, tokenizers, shortlist)
    races = {
        work: choice
        for work, choice in remembered(folders, thread_count(threads)).items()
        if choice.engine != "native" or why_native is None
    }
    if not races:
        others = " or native" if why_native is None else ""
        return f"CTranslate2{others}", "it carries this model; what is fastest is measured when it first translates"
    engine = " or ".join(sorted({NAMES[choice.engine] for choice in races.values()}))
    return engine, "; ".join(f"{work}: {choice}" for work, choice in races.items())


def _why_not(run: Run, device: str) -> str | None:
    """What keeps CTranslate2 from this run on this machine."""
    if (why := obstacle(run.config.model)) is not None:
        return why
    if (why := _elsewhere(device)) is not None:
        return why
    try:
        ctranslate2()
    except (ImportError, OSError) as error:
        return f"it cannot be imported here ({error})"
    return None


def _why_not_native(run: Run, device: str) -> str | None:
    """What keeps the compiled search from this run on this machine, as far as that can be said before it is compiled."""
    return native_obstacle(run.config.model) or _elsewhere(device) or why_no_compiler()


def _elsewhere(device: str) -> str | None:
    if device in ("auto", "cpu") and not (device == "auto" and has_accelerator()):
        return None
    return f"it is used on processors only, and the device is {pick_device(device)}"


def _no_folder(folders: EngineFolders) -> str | None:
    """What keeps the converted model from being there; it is made now if it was not."""
    try:
        folders("float32")
    except RunError as error:
        return str(error)
    return None


def translator_with(
    engine: Engine, run: Run, tokenizers: Tokenizers, decode: DecodeConfig, threads: int = 1
) -> Translator:
    """A translator that knows what its model was trained on."""
    limit = run.config.batches.max_length
    positions = getattr(run.config.model, "max_length", None)
    if positions is not None:
        limit = min(limit, positions)
    return Translator(
        engine,
        tokenizers,
        decode,
        max_source_tokens=limit,
        max_target_tokens=None if positions is None else positions - 1,
        split_sentences=decode.split_sentences,
        threads=threads,
    )
