"""Engines on a run that was trained a little: where converted models are kept, which engine is chosen, and that all give the same answers."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import kente
from kente import api
from kente.api.loading import engine_of
from kente.checkpoints import Checkpoint
from kente.config import DecodeConfig
from kente.data.corpus import write_pairs
from kente.data.grammar import generate
from kente.decode import choosing, native, native_engine
from kente.decode.choosing import Choice, Fastest, Work
from kente.decode.conversion import Numbers
from kente.decode.ctranslate2_engine import CTranslate2Engine, Layout
from kente.decode.engine import Question
from kente.decode.engine_folder import MANIFEST, EngineFolders, is_whole
from kente.decode.native_engine import NativeEngine
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import Translation, Translator
from kente.durable import replace_file
from kente.errors import RunError, UsageError
from kente.export.ctranslate2 import export
from kente.reporting import Reporter
from kente.runs import Run

pytestmark = pytest.mark.slow

SETTINGS = (
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.width=64",
    "model.feedforward=128",
    "model.heads=4",
    "model.norm_place=pre",
    "model.dropout=0",
    "tokenizer.vocabulary=600",
    "batches.tokens=1024",
    "batches.max_length=64",
    "train.validate_every=250",
)


class Listener(Reporter):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has learned something, but not all."""
    folder = tmp_path_factory.mktemp("engines")
    pairs = list(generate(1, 3_300, max_words=5))
    for name, part in (("train", pairs[:3_000]), ("validation", pairs[3_000:3_100]), ("test", pairs[3_100:])):
        write_pairs(folder, name, part, ("en", "fr"))
    data, held_out = (api.Data(folder / f"{name}.en", folder / f"{name}.fr") for name in ("train", "validation"))
    api.train(data, folder / "run", validation=held_out, updates=250, threads=1, settings=SETTINGS)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run, and a cache of its own. There is no compiler, so CTranslate2 and torch are by themselves."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "no-such-compiler")
    shutil.copytree(trained / "run", tmp_path / "run", ignore=shutil.ignore_patterns("engines"))
    return tmp_path / "run"


@pytest.fixture
def float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """No whole numbers, whose rounding would be felt in scores: which numbers win a race depends on the machine."""
    monkeypatch.setattr(choosing.Fastest, "_int8_is_good", lambda self, whose: False)


@pytest.fixture(scope="module")
def lines(trained: Path) -> list[str]:
    return (trained / "test.en").read_text().splitlines()


def folders(run: Path) -> EngineFolders:
    opened = Run.open(run)
    checkpoint = opened.chosen()
    return EngineFolders(opened, checkpoint, opened.tokenizers(checkpoint))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def like(some: list[Translation], others: list[Translation]) -> float:
    """Share of answers that read the same; scores of those agree."""
    agree = [(one, other) for one, other in zip(some, others, strict=True) if one.text == other.text]
    for one, other in agree:
        assert one.score == pytest.approx(other.score, abs=0.01, rel=0.01)  # what may not be written is shared out
        assert one.warnings == other.warnings
    return len(agree) / len(some)


# ---------------------------------------------------------------- the same answers


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("beam", [1, 5])
def test_both_engines_translate_alike(run: Path, lines: list[str], beam: int) -> None:
    in_torch = api.load(run, engine="torch", beam=beam, threads=1).translate(lines)
    fast = api.load(run, engine="ctranslate2", beam=beam, threads=1, shortlist=0).translate(lines)
    assert like(fast, in_torch) >= 0.98
    assert len({translation.text for translation in in_torch}) > 50


@pytest.mark.usefixtures("float32")
def test_n_best_prefix_alignment_and_draws_are_those_of_torch(run: Path, lines: list[str]) -> None:
    slow, fast = (api.load(run, engine=engine, threads=1) for engine in ("torch", "ctranslate2"))
    some = lines[:40]
    several = [(t.text, *(a.text for a in t.alternatives)) for t in slow.translate(some, n_best=3)]
    found = [(t.text, *(a.text for a in t.alternatives)) for t in fast.translate(some, n_best=3)]
    assert sum(one == other for one, other in zip(found, several, strict=True)) >= 36
    beginnings = [" ".join(texts[0].split()[:2]) for texts in several]
    assert like(fast.translate(some, prefix=beginnings), slow.translate(some, prefix=beginnings)) >= 0.95
    aligned = fast.translate(some[0], align=True)[0]
    assert aligned.alignment == slow.translate(some[0], align=True)[0].alignment != ()
    drawn = api.load(run, engine="ctranslate2", threads=1, sample=True, seed=4).translate(some[:4])
    assert drawn == api.load(run, engine="torch", threads=1, sample=True, seed=4).translate(some[:4])


@pytest.mark.usefixtures("float32")
def test_a_text_of_many_sentences_and_blank_lines_goes_through_either_engine(run: Path, lines: list[str]) -> None:
    texts = ["", " ".join(lines[:5]), "  \t", f"{lines[5]}\n{lines[6]}"]
    slow, fast = (api.load(run, engine=engine, threads=1, beam=1) for engine in ("torch", "ctranslate2"))
    assert like(fast.translate(texts), slow.translate(texts)) == 1.0


# ---------------------------------------------------------------- where converted models are kept


def test_a_converted_model_is_made_once_and_kept_beside_the_run(run: Path) -> None:
    kept = folders(run)
    first = kept("float32")
    assert first == run / "engines" / f"ctranslate2-float32-{kept.identity}" and is_whole(first)
    made = (first / "model.bin").stat().st_mtime_ns
    assert folders(run)("float32") == first and (first / "model.bin").stat().st_mtime_ns == made
    assert kept("int8").stat() and (kept("int8") / "model.bin").stat().st_size < (first / "model.bin").stat().st_size
    assert names(run / "engines") == {first.name, kept("int8").name}


def test_it_can_be_deleted_at_any_time(run: Path, lines: list[str]) -> None:
    translator = api.load(run, engine="ctranslate2", threads=1, beam=1)
    before = translator.translate(lines[0])
    shutil.rmtree(run / "engines")
    assert translator.translate(lines[0]) == before == api.load(run, engine="ctranslate2", beam=1).translate(lines[0])


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "manifest", "empty"])
def test_a_damaged_one_is_made_again(run: Path, damage: str) -> None:
    folder = folders(run)("float32")
    model = folder / "model.bin"
    data = bytearray(model.read_bytes())
    match damage:
        case "flip":
            data[len(data) // 2] ^= 1
            model.write_bytes(data)
        case "cut":
            model.write_bytes(data[:-1])
        case "remove":
            model.unlink()
        case "manifest":
            (folder / MANIFEST).write_text("{}")
        case "empty":
            shutil.rmtree(folder)
            folder.mkdir()
    assert not is_whole(folder)
    assert is_whole(folders(run)("float32")) and names(run / "engines") == {folder.name}


def test_other_weights_get_another_folder_and_the_old_one_goes(run: Path) -> None:
    old, opened = folders(run)("float32"), Run.open(run)
    (run / "engines" / "speed-00000000-000000000000.json").write_text("{}")
    checkpoint = opened.chosen()
    weights = {name: tensor + 0.01 for name, tensor in checkpoint.load("model").items()}
    score = dataclasses.asdict(dataclasses.replace(checkpoint.score, value=1e6, higher_is_better=True))  # type: ignore[type-var]
    opened.save(checkpoint.step + 1, {"model": weights}, {**checkpoint.state, "score": score}, keep=1)
    new = folders(run)("float32")
    assert new != old and names(run / "engines") == {new.name}


def test_another_shortlist_gets_another_folder_and_the_first_one_stays(run: Path) -> None:
    opened = Run.open(run)
    checkpoint = opened.chosen()
    tokenizers = opened.tokenizers(checkpoint)
    short = opened.shortlist(tokenizers)
    kept = [EngineFolders(opened, checkpoint, tokenizers, some) for some in (None, short.first(5), short.first(9))]
    for one in kept:
        one.write_note(f"speed-01234567-{one.identity}.json", {"int8 loses": 0.0})
    made = {one("float32").name for one in kept}
    assert len(made) == 3 and names(run / "engines") == made | {f"speed-01234567-{o.identity}.json" for o in kept}


def test_what_was_left_unfinished_long_ago_is_removed_and_what_is_being_written_is_not(run: Path) -> None:
    for name, age in ((".part-old", 7200), (".part-new", 60)):
        (run / "engines" / name).mkdir(parents=True)
        os.utime(run / "engines" / name, (0, 0) if age > 3600 else None)
    folder = folders(run)("float32")
    assert names(run / "engines") == {folder.name, ".part-new"}


def test_two_processes_may_make_it_at_once(run: Path) -> None:
    code = (
        "import sys; from kente.runs import Run; from kente.decode.engine_folder import EngineFolders, is_whole\n"
        "opened = Run.open(sys.argv[1]); checkpoint = opened.chosen(); sys.stdin.readline()\n"
        "folder = EngineFolders(opened, checkpoint, opened.tokenizers(checkpoint))('float32')\n"
        "print(folder, is_whole(folder))"
    )
    command = [sys.executable, "-c", code, str(run)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    together = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in together:
        process.stdin.write("go\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    said = {process.communicate(timeout=120)[0].strip() for process in together}
    folder = folders(run)("float32")
    assert said == {f"{folder} True"} and names(run / "engines") == {folder.name}


def test_two_threads_may_make_it_at_once(run: Path) -> None:
    kept = folders(run)
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(kept("float32"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [made[0]] * 4 and is_whole(made[0]) and names(run / "engines") == {made[0].name}


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder nothing can be made in. Root may write anywhere, so a file stands where the new folder would."""
    if os.geteuid() == 0:
        (folder / "engines").write_text("")
        yield
        return
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_where_the_run_cannot_be_written_to_the_cache_takes_it(run: Path, tmp_path: Path, lines: list[str]) -> None:
    with read_only(run):
        listener = Listener()
        answer = api.load(run, engine="ctranslate2", beam=1, reporter=listener).translate(lines[0])[0]
        assert answer.text and any("CTranslate2" in said for said in listener.said)
        (home,) = (tmp_path / "cache" / "kente" / "engines").iterdir()
        assert {name.partition("-")[0] for name in names(home)} == {"ctranslate2", "speed"}
        assert folders(run)("float32").parent == home


def test_a_run_that_cannot_be_written_to_and_brings_a_note_is_measured_once(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    api.load(run, beam=1, threads=2, engine="ctranslate2").translate(lines[0])
    brought = folders(run)
    brought.write_note("speed-01234567", {"few": 1, "many": 1})

    def refuse(path: Path, data: bytes) -> None:
        if run in path.parents:
            raise PermissionError(13, "Permission denied")
        replace_file(path, data)

    with monkeypatch.context() as patch:
        patch.setattr("kente.decode.engine_folder.replace_file", refuse)
        first, again = Listener(), Listener()
        for listener in (first, again):
            translator = api.load(run, beam=1, threads=2, engine="ctranslate2", reporter=listener)
            translator.translate(lines[0])
            translator.translate(lines[:20])
        assert sum(said.startswith("measuring") for said in first.said) == 1, "of few sentences the run told"
        assert again.said == [said for said in first.said if not said.startswith("measuring")]
        brought.write_note("speed-01234567", {"many": 2})
        assert brought.read_note("speed-01234567") == {"few": 1, "many": 2}
    brought.write_note("speed-01234567", {"many": 3})
    assert brought.read_note("speed-01234567") == {"many": 3}, "the cache does not speak against what is newer"


def test_where_nothing_can_be_written_torch_translates_and_the_reason_is_said(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with read_only(run):
        listener = Listener()
        translator = api.load(run, beam=1, reporter=listener)
        assert isinstance(translator.engine, TorchEngine) and translator.translate(lines[0])[0].text
        assert "translating with torch; CTranslate2 cannot: no place for the converted model: " in listener.said[-1]
        assert str(run / "engines") in listener.said[-1]
        with pytest.raises(
            UsageError, match=r"CTranslate2 cannot be the engine for .*no place for the converted model"
        ):
            api.load(run, engine="ctranslate2")


def test_force_begins_without_the_engines_of_the_run_before(run: Path) -> None:
    folders(run)("float32")
    Run.create(run, Run.open(run).config, force=True)
    assert not (run / "engines").exists()


# ---------------------------------------------------------------- which engine


def fastest(run: Path, **settings: Any) -> Fastest:
    engine = api.load(run, **{"threads": 2, **settings}).engine
    assert isinstance(engine, Fastest)
    return engine


def test_the_choice_is_measured_once_said_and_remembered(run: Path, lines: list[str]) -> None:
    first, second = Listener(), Listener()
    api.load(run, beam=1, threads=2, reporter=first).translate(lines[0])
    assert first.said[0] == "measuring engines, once for this run and machine (few sentences, beam 1)"
    assert first.said[1].startswith("translating with CTranslate2, ") and len(first.said) == 2
    api.load(run, beam=1, threads=2, reporter=second).translate(lines[0])
    assert second.said == first.said[1:]
    (note,) = (path for path in (run / "engines").iterdir() if path.name.startswith("speed-"))
    assert isinstance(json.loads(note.read_bytes())["int8 of CTranslate2 loses"], float)


def test_few_sentences_and_many_and_each_beam_are_measured_by_themselves(run: Path, lines: list[str]) -> None:
    listener = Listener()
    translator = api.load(run, beam=1, threads=2, reporter=listener)
    for texts, beam in ((lines[:1], 1), (lines[:9], 1), (lines[:2], 3), (lines[:20], 1)):
        translator.translate(texts, beam=beam)
    measured = [said.partition("(")[2].rstrip(")") for said in listener.said if said.startswith("measuring")]
    many = "many sentences, beam 1, torch too, shortlist too"
    assert measured == ["few sentences, beam 1", many, "few sentences, beam 3"]
    assert any("(torch: " in said or said.startswith("translating with torch") for said in listener.said)


def test_a_race_about_other_batches_is_another_race(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing.Race, "pace", lambda *_: 1.0)
    listener, chosen = Listener(), []
    for tokens in (None, 512, None, 512, 8192):
        how: dict[str, Any] = {"beam": 1, "threads": 2, "shortlist": 0, "engine": "ctranslate2", "reporter": listener}
        translator = api.load(run, **how, batch_tokens=tokens)
        translator.translate(lines[:20])
        (choice,) = translator.engine._choices.values()  # type: ignore[attr-defined]
        chosen.append(choice.layout.batch_tokens)
    assert [said.partition("machine ")[2] for said in listener.said if said.startswith("measuring")] == [
        "(many sentences, beam 1)",
        "(many sentences, beam 1, batches of 512 tokens)",
        "(many sentences, beam 1, batches of 8,192 tokens)",
    ]
    assert chosen == [4096, 512, 4096, 512, 8192]


@pytest.mark.usefixtures("float32")
def test_a_model_that_won_a_race_stays_loaded_through_the_next_one(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wins = {False: (1, 1), True: (2, 1)}

    def pace(race: Any, engine: Any, count: int, best: float = 0.0) -> float:
        assert engine.translator, "it is loaded"
        return 9.0 if (engine.layout.workers, engine.layout.threads) == wins[race.work.many] else 1.0

    monkeypatch.setattr(choosing.Race, "pace", pace)
    translator = api.load(run, beam=1, threads=2, shortlist=0, engine="ctranslate2")
    loaded = translator.engine.engine._loaded  # type: ignore[attr-defined]
    translator.translate(lines[0])
    (first,) = loaded.values()
    translator.translate(lines[:20])
    assert loaded.keys() == {("float32", *wins[False]), ("float32", *wins[True])}, "the losers are let go"
    assert loaded["float32", 1, 1] is first


def test_with_a_deadline_nobody_waits_for_a_race_but_the_first_of_few_and_of_many(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    races: list[Work] = []
    won = {False: Layout("float32", 1, 2), True: Layout("float32", 2, 1, shortlist=True)}

    def measured(self: Fastest, work: Work, config: DecodeConfig) -> Choice:
        races.append(work)
        return Choice("ctranslate2", won[work.many], 1.0)

    monkeypatch.setattr(Fastest, "_measured", measured)
    engine, few, many = fastest(run, beam=4), [Question([5], 3)] * 2, [Question([5], 3)] * 20

    def found(questions: list[Question], beam: int, n_best: int = 1, measure: bool = False) -> Any:
        chosen: Any = engine.fastest(questions, DecodeConfig(beam=beam), n_best, measure=measure)
        return chosen.layout

    assert found(few, 4) == won[False] and found(many, 4) == won[True] and len(races) == 2
    assert found(few, 1) == won[False] and found(many, 6) == won[True] and len(races) == 2
    assert found(many, 4, n_best=3) == dataclasses.replace(won[True], shortlist=False), "answers are compared"
    engine._remember(str(dataclasses.replace(races[0], beam=2)), Choice("ctranslate2", Layout("int8"), 1.0).as_dict())
    assert found(few, 2) == Layout("int8") and len(races) == 2, "what was measured before counts"
    assert found(few, 1, measure=True) == won[False] and len(races) == 3, "without a deadline it is measured after all"


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "[]",
        "nonsense",
        '{"few sentences, beam 1": {"layout": {"numbers": "int8", "legs": 4}}}',
        '{"few sentences, beam 1": {"engine": "ctranslate2", "layout": {"numbers": "int7"}, "pace": 1, "beaten": {}, "shortlist": 0}}',
        '{"few sentences, beam 1": {"engine": "magic", "layout": null, "pace": 1, "beaten": {}, "shortlist": false}}',
        '{"few sentences, beam 1": {"engine": "torch", "layout": null, "pace": 1, "beaten": [], "shortlist": false}}',
    ],
)
def test_a_note_that_cannot_be_read_is_measured_anew(run: Path, broken: str, lines: list[str]) -> None:
    engine = fastest(run, beam=1)
    api.load(run, beam=1, threads=2).translate(lines[0])
    (run / "engines" / engine._note).write_text(broken)
    listener = Listener()
    api.load(run, beam=1, threads=2, reporter=listener).translate(lines[0])
    assert listener.said[0].startswith("measuring engines")


def test_torch_is_imported_to_race_only_for_a_file_that_may_repay_it(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    races: list[Work] = []

    def measured(self: Fastest, work: Work, config: DecodeConfig) -> Choice:
        races.append(work)
        return Choice("ctranslate2", Layout(), 1.0)

    monkeypatch.setattr(Fastest, "_measured", measured)
    for imported, count in ((True, 9), (False, 9), (False, 255), (False, 256), (False, 8)):
        with monkeypatch.context() as patch:
            if not imported:
                patch.delitem(sys.modules, "torch")
            engine = fastest(run, beam=1)
            engine.fastest([Question([5], 3)] * count, DecodeConfig(beam=1))
    assert [(work.many, work.torch) for work in races] == [
        (True, True),
        (True, False),
        (True, False),
        (True, True),
        (False, False),
    ]
    races.clear()
    fastest(run, beam=1, engine="ctranslate2").fastest([Question([5], 3)] * 300, DecodeConfig(beam=1))
    assert not races[0].torch


def test_another_number_of_threads_is_another_race(run: Path) -> None:
    assert fastest(run, threads=1)._note != fastest(run, threads=2)._note == fastest(run, threads=2)._note


def test_so_is_another_processor_of_the_same_name(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = fastest(run)._note
    monkeypatch.setattr(choosing, "abilities", lambda: "less")
    assert fastest(run)._note != here


@pytest.mark.parametrize(("lost", "races"), [(0.0019, True), (0.0051, False), (-0.01, True)])
@pytest.mark.parametrize("whose", ["ctranslate2", "native"])
def test_int8_races_only_if_it_loses_nothing_noticeable(run: Path, whose: Any, lost: float, races: bool) -> None:
    engine = fastest(run, beam=1)
    engine.folders.write_note(engine._note, {f"int8 of {choosing.NAMES[whose]} loses": lost})
    assert engine._int8_is_good(whose) == races


def test_what_int8_loses_is_the_difference_in_loss_on_the_validation_set(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = fastest(run, beam=1)
    pairs = engine._pairs(1000)
    assert len(pairs) == 100
    loss = choosing.reference_loss(engine.engine.with_layout(Layout("float32")), pairs)
    translator = api.load(run, engine="torch", threads=1)
    model: Any = translator.model
    total = tokens = 0.0
    for source, target in pairs:
        ids = torch.tensor([[*source, 3]])
        with torch.inference_mode():
            hidden = model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[2, *target]]))
            scores = torch.log_softmax(model.predict(hidden)[0], -1)
        total -= float(scores.gather(1, torch.tensor([*target, 3])[:, None]).sum())
        tokens += len(target) + 1
    assert loss == pytest.approx(total / tokens, abs=1e-4)
    engine._int8_is_good("ctranslate2")
    remembered = engine.folders.read_note(engine._note)["int8 of CTranslate2 loses"]
    int8 = choosing.reference_loss(engine.engine.with_layout(Layout("int8")), pairs)
    assert remembered == pytest.approx(int8 - loss, abs=1e-4)
    monkeypatch.delenv("CC")
    if native.why_no_compiler() is not None:
        return
    engine = fastest(run, beam=1)
    compiled: Any = engine.native
    assert choosing.forced_loss(compiled("float32"), pairs) == pytest.approx(loss, abs=1e-4)
    if native.can_round():
        engine._int8_is_good("native")
        remembered = engine.folders.read_note(engine._note)["int8 of native loses"]
        assert remembered == pytest.approx(choosing.forced_loss(compiled("int8"), pairs) - loss, abs=1e-4)
        assert 1e-6 < abs(remembered) < 0.02, "something was rounded"


@pytest.mark.parametrize(
    ("lost", "same", "races"),
    [(0.0019, 0.9, {False, True}), (0.0051, 1.0, {False}), (0.0, 0.84, {False}), (-1.0, 0.95, {False, True})],
)
def test_a_shortlist_races_only_if_it_loses_nothing_noticeable(
    run: Path, lost: float, same: float, races: set[bool], lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set[bool]()

    def pace(race: Any, engine: Any, count: int, best: float = 0.0) -> float:
        seen.add(engine.layout.shortlist)
        return 1.0

    monkeypatch.setattr(choosing.Race, "pace", pace)
    engine = fastest(run, beam=1, engine="ctranslate2")
    known = {"int8 of CTranslate2 loses": 1.0, "shortlist of CTranslate2, beam 1": {"loses": lost, "same": same}}
    engine.folders.write_note(engine._note, known)
    translator = api.load(run, beam=1, threads=2, engine="ctranslate2")
    translator.translate(lines[:20])
    assert seen == races
    seen.clear()
    translator.translate(lines[:1])
    translator.translate(lines[:20], n_best=2)
    assert seen == {False}, "someone waits, or scores are compared"


@pytest.mark.parametrize("whose", ["ctranslate2", "torch", "native"])
def test_what_a_shortlist_loses_is_told_by_how_likely_its_answers_are_among_all_words(
    run: Path, whose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whose == "native":
        monkeypatch.delenv("CC")
    engine = fastest(run, beam=1)
    race = choosing.Race(Work(True, 1), DecodeConfig(beam=1), engine._pairs(200), engine.engine, 63)
    found = engine.engine.with_layout(Layout()).search(race.questions, race.config)
    wanted = -sum(some[0].log_probability for some in found) / sum(len(some[0].ids) + 1 for some in found)
    free, short = (race.answers(engine._weighing(whose, used)) for used in (False, True))
    assert race.answer_loss(free) == pytest.approx(wanted, rel=1e-3)
    engine._shortlist_is_good(race, whose)
    noted = engine.folders.read_note(engine._note)[f"shortlist of {choosing.NAMES[whose]}, beam 1"]
    assert noted["loses"] == pytest.approx(race.answer_loss(short) - wanted, abs=2e-3)
    assert noted["same"] == pytest.approx(sum(map(list.__eq__, free, short)) / len(free), abs=0.05)


def test_a_shortlist_is_for_the_engine_to_decide_unless_the_settings_do(run: Path, lines: list[str]) -> None:
    (run / "shortlist.safetensors").exists() or pytest.fail("training leaves a shortlist")
    for setting, shortlists in ((-1, (False, True)), (0, (False,)), (5, (True,))):
        engine: Any = api.load(run, beam=1, threads=2, shortlist=setting).engine
        assert engine.shortlists == shortlists
    (run / "shortlist.safetensors").unlink()
    without: Any = api.load(run, beam=1, threads=2).engine
    assert without.shortlists == (False,), "one that is not there is not learnt while someone waits"


def test_a_damaged_shortlist_that_nobody_asked_for_keeps_nobody_from_translating(run: Path, lines: list[str]) -> None:
    path = run / "shortlist.safetensors"
    path.write_bytes(b"torn")
    again = Listener()
    assert api.load(run, beam=1, threads=2, reporter=again).engine.shortlists == (False, True)  # type: ignore[attr-defined]
    assert [said.partition(":")[0] for said in again.warned] == [f"cannot read {path}"]
    assert again.warned[0].endswith("; learning it again now")
    shutil.rmtree(run / "data")
    path.write_bytes(b"torn")
    listener = Listener()
    translator = api.load(run, beam=1, threads=2, reporter=listener)
    assert translator.translate(lines[0])[0].text and translator.engine.shortlists == (False,)  # type: ignore[attr-defined]
    (warned,) = listener.warned
    assert warned.startswith(f"translating without a shortlist: cannot read {path}: ")
    assert warned.endswith(
        f"; it cannot be learnt again, for {run / 'data' / 'train'} is gone; translate without: decode.shortlist=0"
    )
    assert engine_of(Run.open(run))[0] == "CTranslate2"
    with pytest.raises(RunError, match=f"cannot read {path}"):
        api.load(run, beam=1, shortlist=5)


def test_a_run_without_its_corpus_translates_unmeasured_and_in_float32(run: Path, lines: list[str]) -> None:
    shutil.rmtree(run / "data")
    listener = Listener()
    translator = api.load(run, beam=1, threads=2, reporter=listener)
    translator.translate(lines[:1])
    translator.translate(lines[:20])
    assert listener.said == [
        "translating with CTranslate2, float32, 1 x 2 threads (not measured: the run has no validation set)",
        "translating with CTranslate2, float32, 2 x 1 threads (not measured: the run has no validation set)",
    ]


def test_the_fastest_of_the_race_wins_and_torch_may(run: Path) -> None:
    engine = fastest(run, beam=1)
    race = choosing.Race(Work(True, 1), DecodeConfig(beam=1), engine._pairs(200), engine.engine, 63)
    paces = {Layout(workers=2): 50.0, Layout(threads=2): 40.0, Layout("int8", workers=2): 52.0}
    race.pace = lambda raced, count, best=0.0: paces.get(getattr(raced, "layout", None), 45.0)  # type: ignore[method-assign, assignment, arg-type]
    choice = race.of_layouts(list(paces))
    assert choice == Choice("ctranslate2", Layout(workers=2), 50.0), "int8 must be faster by a margin"
    paces[Layout("int8", workers=2)] = 60.0
    assert race.of_layouts(list(paces)).layout == Layout("int8", workers=2)
    torch_engine = engine.in_torch()
    won = Choice("ctranslate2", Layout(workers=2), 50.0, {"torch": 45.0})
    assert race.against(choice, "torch", {("float32", False): torch_engine}) == won
    slower = dataclasses.replace(choice, pace=44.0)
    lost = Choice("torch", None, 45.0, {"CTranslate2": 44.0})
    assert race.against(slower, "torch", {("float32", False): torch_engine}) == lost
    for quicker, shortlist in ((46.0, False), (48.0, True)):
        race.pace = lambda raced, count, best=0.0, q=quicker: 45.0 if raced.shortlist is None else q  # type: ignore[method-assign, assignment]
        engines = {("float32", used): engine._weighing("torch", used) for used in (False, True)}
        found = race.against(slower, "torch", engines)  # type: ignore[arg-type]
        assert found.shortlist == shortlist and found.layout is None, "a shortlist must be faster by a margin"


@pytest.mark.parametrize(
    ("known", "way", "pace", "wins"),
    [
        (("float32", False), ("int8", False), 52.0, False),
        (("float32", False), ("int8", False), 53.0, True),
        (("float32", False), ("int8", True), 55.0, False),
        (("float32", False), ("float32", True), 52.0, False),
        (("int8", False), ("float32", False), 48.0, True),
        (("int8", True), ("float32", False), 45.0, False),
        (("int8", True), ("int8", True), 51.0, True),
    ],
)
def test_between_engines_too_int8_and_a_shortlist_must_be_faster_by_a_margin(
    run: Path, known: Any, way: Any, pace: float, wins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing.Race, "pace", lambda *_: pace)
    engine = fastest(run, beam=1)
    race = choosing.Race(Work(True, 1), DecodeConfig(beam=1), engine._pairs(200), engine.engine, 63)
    choice = Choice("ctranslate2", Layout(numbers=known[0], shortlist=known[1]), 50.0)
    found = race.against(choice, "native", {way: engine})
    assert (found.engine, found.way) == (("native", way) if wins else ("ctranslate2", known))
    back = race.against(Choice("native", None, 50.0, {}, known[1], known[0]), "torch", {way: engine})
    assert (back.engine == "torch") == wins, "whichever of them was there first"


@pytest.mark.parametrize(
    ("many", "threads", "shapes"),
    [
        (False, 1, {(1, 1)}),
        (False, 4, {(1, 1), (1, 4)}),
        (True, 1, {(1, 1)}),
        (True, 2, {(2, 1), (1, 2)}),
        (True, 8, {(8, 1), (4, 2), (1, 8)}),
    ],
)
def test_no_layout_uses_more_threads_than_there_are(many: bool, threads: int, shapes: set[tuple[int, int]]) -> None:
    layouts = choosing._layouts(Work(many, 5), threads, ["float32", "int8"], DecodeConfig())
    assert {(layout.workers, layout.threads) for layout in layouts} == shapes
    assert len(layouts) == 2 * len(shapes)


def test_a_choice_is_remembered_whole() -> None:
    for choice in (
        Choice("ctranslate2", Layout("int8", 2, 1, 99), 12.5, {"torch": 3.0}),
        Choice("native", None, 4.0, {"CTranslate2": 3.0}, True),
        Choice("native", None, 4.0, {"CTranslate2": 3.0}, True, "int8"),
        Choice("ctranslate2", Layout(), 1.0),
    ):
        assert Choice.from_dict(json.loads(json.dumps(choice.as_dict()))) == choice


def test_what_only_torch_can_do_is_said_to_be_done_in_torch(run: Path, lines: list[str]) -> None:
    listener = Listener()
    translator = api.load(run, sample=True, threads=1, reporter=listener)
    translator.translate(lines[:2])
    translator.translate(lines[:2])
    assert listener.said == ["translating with torch; CTranslate2 cannot: its draws do not follow our seed"]
    assert translator.engine.name == "torch"


# ---------------------------------------------------------------- the compiled search among them


@pytest.fixture
def compiler(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC")
    if native.why_no_compiler() is not None:
        pytest.skip(native.NO_COMPILER)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_compiled_search_translates_as_torch_does(run: Path, lines: list[str], beam: int, compiler: None) -> None:
    fast = kente.load(run, engine="native", beam=beam, threads=2)
    slow = kente.load(run, engine="torch", beam=beam, threads=1)
    assert isinstance(fast.engine, NativeEngine) and fast.engine.name == "native"
    found, wanted = (translator.translate(lines, align=True) for translator in (fast, slow))
    assert [t.text for t in found] == [t.text for t in wanted]
    assert [t.alignment for t in found] == [t.alignment for t in wanted]
    assert [t.score for t in found] == pytest.approx([t.score for t in wanted], abs=1e-3)


@pytest.mark.parametrize(
    ("quick", "wins"), [(7.5, "native, int8, shortlist"), (7.2, "native, shortlist"), (0.0, "native, shortlist")]
)
def test_its_whole_numbers_race_where_the_processor_has_them_and_win_by_a_margin(
    run: Path, lines: list[str], compiler: None, monkeypatch: pytest.MonkeyPatch, quick: float, wins: str
) -> None:
    if not native.can_round():
        pytest.skip("this processor has no products of int8 that the compiled search uses")
    seen = set[tuple[bool, bool]]()

    def pace(race: Any, engine: Any, count: int, best: float = 0.0) -> float:
        if not isinstance(engine, NativeEngine):
            return 5.0
        rounded, short = engine.network.rounded, engine.shortlist is not None
        seen.add((rounded, short))
        return quick if rounded and short else 7.0 if short else 6.0

    monkeypatch.setattr(choosing.Race, "pace", pace)
    monkeypatch.setattr(choosing.Fastest, "_shortlist_is_good", lambda *_: True)
    monkeypatch.setattr(choosing.Fastest, "_int8_is_good", lambda self, whose: bool(quick))
    listener = Listener()
    translator = api.load(run, beam=1, threads=2, reporter=listener)
    translator.translate(lines[:20])
    assert f"translating with {wins}: " in listener.said[-1]
    assert seen == {(rounded, short) for rounded in {False, bool(quick)} for short in (False, True)}
    laid_out = list[Numbers]()

    def network(config: Any, arrays: Any, numbers: Numbers) -> native_engine.Network:
        laid_out.append(numbers)
        return native_engine.Network(config, arrays, numbers)

    monkeypatch.setattr("kente.api.loading.Network", network)
    again = api.load(run, beam=1, threads=2)
    again.translate(lines[:20])
    assert laid_out == ["int8" if "int8" in wins else "float32"], "the winner's weights, and no others"
    assert again.engine.name == wins.removesuffix(", shortlist").replace(",", "")
    assert len(again.engine._networks) == len(translator.engine._networks) == 1, "the loser is given back"  # type: ignore[attr-defined]
    monkeypatch.setattr(native_engine, "can_round", lambda: False)
    monkeypatch.setattr(choosing, "can_round", lambda: False)
    without = Listener()
    api.load(run, beam=1, threads=2, reporter=without).translate(lines[:20])
    assert "int8" not in without.said[-1], "with a compiler that has no such products the race is run again"


def test_texts_that_the_model_has_no_places_for_are_no_part_of_a_race(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = fastest(run, beam=1)
    longest = max(len(side) for pair in engine._pairs(1000) for side in pair)
    monkeypatch.setattr(EngineFolders, "longest", property(lambda folders: longest - 1))
    kept = engine._pairs(1000)
    assert 0 < len(kept) < 100 and all(max(map(len, pair)) < longest for pair in kept)


def test_it_races_and_wins_where_it_is_fastest(
    run: Path, lines: list[str], compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        choosing.Race, "pace", lambda race, engine, count, best=0.0: 7.0 if engine.name == "native" else 6.0
    )
    listener = Listener()
    translator = api.load(run, beam=1, threads=2, shortlist=0, reporter=listener)
    translator.translate(lines[:20])
    assert listener.said == [
        "measuring engines, once for this run and machine (many sentences, beam 1, native too)",
        "translating with native: 7 sentences/s when measured here (CTranslate2: 6)",
    ]
    assert translator.engine.name == "native"
    again = Listener()
    api.load(run, beam=1, threads=2, shortlist=0, reporter=again).translate(lines[:20])
    assert again.said == listener.said[1:]
    monkeypatch.setattr("kente.api.loading.offered_shortlist", lambda *_: None)  # as with shortlist=0
    assert engine_of(Run.open(run), threads=2) == (
        "native",
        "many sentences, beam 1, native too: native: 7 sentences/s when measured here (CTranslate2: 6)",
    )


def test_where_it_cannot_be_compiled_any_more_the_race_is_run_again(
    run: Path, lines: list[str], compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        choosing.Race, "pace", lambda race, engine, count, best=0.0: 7.0 if engine.name == "native" else 6.0
    )
    api.load(run, beam=1, threads=2, shortlist=0).translate(lines[:20])

    def missing() -> Any:
        raise native.NativeMissing("the disk is full")

    listener, again, back = Listener(), Listener(), Listener()
    with monkeypatch.context() as patch:
        patch.setattr(native_engine, "library", missing)
        api.load(run, beam=1, threads=2, shortlist=0, reporter=listener).translate(lines[:20])
        api.load(run, beam=1, threads=2, shortlist=0, reporter=again).translate(lines[:20])
    assert listener.said[:2] == [
        "no native search: the disk is full",
        "measuring engines, once for this run and machine (many sentences, beam 1, torch too)",
    ]
    assert listener.said[2].startswith("translating with CTranslate2, ") and "(torch: 6)" in listener.said[2]
    assert again.said == [listener.said[0], listener.said[2]], "both races are remembered, each for what took part"
    api.load(run, beam=1, threads=2, shortlist=0, reporter=back).translate(lines[:20])
    assert back.said == ["translating with native: 7 sentences/s when measured here (CTranslate2: 6)"]
    monkeypatch.setattr(native_engine, "library", missing)
    with pytest.raises(UsageError, match=r"the native search cannot be the engine for .*: the disk is full"):
        api.load(run, engine="native")


def test_a_race_it_could_not_take_part_in_is_run_again_once_it_can(
    run: Path, lines: list[str], compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        choosing.Race, "pace", lambda race, engine, count, best=0.0: 7.0 if engine.name == "native" else 6.0
    )

    def missing() -> Any:
        raise native.NativeMissing("the disk is full")

    first, second = Listener(), Listener()
    with monkeypatch.context() as patch:
        patch.setattr(native_engine, "library", missing)
        api.load(run, beam=1, threads=2, reporter=first).translate(lines[0])
    assert first.said[1] == "measuring engines, once for this run and machine (few sentences, beam 1)"
    api.load(run, beam=1, threads=2, reporter=second).translate(lines[0])
    assert second.said[0] == "measuring engines, once for this run and machine (few sentences, beam 1, native too)"


def test_a_run_without_its_corpus_compiles_nothing(run: Path, lines: list[str], compiler: None) -> None:
    shutil.rmtree(run / "data")
    listener = Listener()
    translator = api.load(run, beam=1, threads=2, reporter=listener)
    translator.translate(lines[0])
    assert "not measured" in listener.said[0] and not (run.parent / "cache" / "kente" / "native").exists()


def test_beams_that_ctranslate2_cannot_search_are_compiled_too(run: Path, lines: list[str], compiler: None) -> None:
    listener = Listener()
    translator = api.load(run, beam=3, no_repeat=2, threads=1, reporter=listener)
    found = [answer.text for answer in translator.translate(lines[:5])]
    why = "words that must not be repeated disturb the order of its beam"
    assert listener.said == [f"translating with native; CTranslate2 cannot: {why}"]
    slow = api.load(run, beam=3, no_repeat=2, threads=1, engine="torch")
    assert found == [answer.text for answer in slow.translate(lines[:5])]


@pytest.mark.usefixtures("float32", "compiler")
def test_a_beam_too_wide_for_it_is_left_to_ctranslate2_without_torch(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kente.api.loading.has_torch", lambda: False)
    listener = Listener()
    translator = api.load(run, beam=70, threads=1, shortlist=0, reporter=listener)
    assert translator.translate(lines[0])[0].text
    translator.translate(lines[0], beam=4, n_best=70)
    assert listener.said[0] == "measuring engines, once for this run and machine (few sentences, beam 70)"
    assert listener.said[1].startswith("translating with CTranslate2, ") and len(listener.said) == 2
    assert translator.engine.name == "CTranslate2 float32"


@pytest.mark.usefixtures("compiler")
def test_with_a_deadline_too_what_it_cannot_do_is_not_left_to_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races: list[Work] = []

    def measured(self: Fastest, work: Work, config: DecodeConfig) -> Choice:
        races.append(work)
        return Choice("native", None, 1.0)

    monkeypatch.setattr(Fastest, "_measured", measured)
    engine, few = fastest(run, beam=4), [Question([5], 3)] * 2
    assert isinstance(engine.fastest(few, DecodeConfig(beam=4)), NativeEngine)
    assert isinstance(engine.fastest(few, DecodeConfig(beam=5), measure=False), NativeEngine)
    assert isinstance(engine.fastest(few, DecodeConfig(beam=70), measure=False), CTranslate2Engine)
    assert races == [Work(False, 4, native=True)], "nobody waits for another race"


@pytest.mark.usefixtures("compiler")
def test_for_draws_which_only_torch_can_make_nothing_is_compiled(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise native.NativeMissing("the disk is full")

    monkeypatch.setattr(native_engine, "library", missing)
    listener = Listener()
    api.load(run, sample=True, threads=1, reporter=listener).translate(lines[:2])
    assert listener.said == ["translating with torch; CTranslate2 cannot: its draws do not follow our seed"]


def test_it_needs_no_torch(run: Path, compiler: None) -> None:
    code = (
        "import sys, kente; t = kente.load(sys.argv[1], engine='native', threads=1); print(t.translate('the cat sleeps')[0].text); "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_where_neither_it_nor_ctranslate2_can_be_had_both_reasons_are_said(
    run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise ImportError("no module of that name")

    broken, opened = run / "broken-cc", Run.open(run)
    broken.write_text("#!/bin/sh\necho 'error: math.h: no such file' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    monkeypatch.setattr("kente.api.loading.ctranslate2", missing)
    native.library.cache_clear()
    why = "CTranslate2 cannot: it cannot be imported here (no module of that name)"
    assert engine_of(opened) == ("native", why), "nobody has tried to compile it"
    listener = Listener()
    translator = api.load(run, beam=1, threads=1, reporter=listener)
    failed = f"{why}; nor can the native search: {broken} could not compile it: error: math.h: no such file"
    assert isinstance(translator.engine, TorchEngine) and listener.said == [f"translating with torch; {failed}"]
    name, because = engine_of(opened)
    assert name == "torch" and because.startswith(f"{failed} (not tried again for 6 hours, or until ")
    monkeypatch.setattr("kente.api.loading.has_torch", lambda: False)
    with pytest.raises(UsageError) as caught:
        api.load(run, beam=1, threads=1)
    wanted = f"{run} needs torch, which is not installed here; `pip install torch` adds it. {failed}"
    assert str(caught.value).startswith(wanted)


def test_a_race_it_won_does_not_count_where_it_cannot_be_compiled(
    run: Path, compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kente.api.loading.offered_shortlist", lambda *_: None)
    engine = fastest(run, beam=1)
    engine._remember(str(Work(False, 1, native=True)), Choice("native", None, 7.0).as_dict())
    assert engine_of(Run.open(run), threads=2)[0] == "native"
    monkeypatch.setattr("kente.api.loading.why_not_compiled", lambda: "the compiler is broken")
    assert engine_of(Run.open(run), threads=2)[0] == "CTranslate2"


# ---------------------------------------------------------------- asked for by name


def test_an_engine_that_does_not_exist_is_refused(run: Path) -> None:
    with pytest.raises(
        kente.errors.ConfigError, match=r"decode\.engine must be one of auto, torch, ctranslate2, native"
    ):
        api.load(run, engine="magic")


def test_a_model_that_does_not_fit_says_why_and_goes_to_torch(trained: Path, tmp_path: Path) -> None:
    data = api.Data(trained / "train.en", trained / "train.fr")
    api.train(
        data, tmp_path / "gru", recipe="gru-attention", updates=2, threads=1,
        settings=("model.width=16", "model.embedding=16", "tokenizer.vocabulary=400", "train.validate_sentences=2"),
    )  # fmt: skip
    listener = Listener()
    assert isinstance(api.load(tmp_path / "gru", threads=1, reporter=listener).engine, TorchEngine)
    why = "it carries Transformers, and this is a recurrent model"
    assert listener.said == [f"translating with torch; CTranslate2 cannot: {why}"]
    with pytest.raises(UsageError) as caught:
        api.load(tmp_path / "gru", engine="ctranslate2")
    assert str(caught.value) == f"CTranslate2 cannot be the engine for {tmp_path / 'gru'}: {why}; --engine torch can"
    with pytest.raises(UsageError, match=f"cannot be exported to CTranslate2: {why}"):
        export(tmp_path / "gru", tmp_path / "out")


def test_another_device_than_the_processor_is_for_torch(run: Path) -> None:
    with pytest.raises(UsageError, match="--device cuda: this machine or this build of torch has no cuda"):
        api.load(run, device="cuda")


def test_a_damaged_checkpoint_is_never_used_whatever_the_engine(run: Path, lines: list[str]) -> None:
    api.load(run, engine="ctranslate2", beam=1).translate(lines[0])
    for checkpoint in Run.open(run).checkpoints():
        path = checkpoint.path / "average.safetensors"
        data = bytearray(path.read_bytes())
        data[-5] ^= 4
        path.write_bytes(data)
    with pytest.raises(RunError, match=r"average\.safetensors is damaged"):
        api.load(run, engine="ctranslate2", beam=1)


def test_evaluation_says_which_engine_translated(trained: Path, run: Path) -> None:
    test = trained / "test.en", trained / "test.fr"
    fast, slow = (api.evaluate(run, *test, engine=engine, beam=1, threads=1) for engine in ("ctranslate2", "torch"))
    assert fast.history[-1].startswith("CTranslate2 ") and slow.history[-1] == "torch"
    assert fast.loss == slow.loss and fast.bleu.value == pytest.approx(slow.bleu.value, abs=1.0)


def test_evaluation_names_all_engines_that_translated(
    trained: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(self: Fastest, work: Work, config: DecodeConfig) -> Choice:
        return Choice("ctranslate2", Layout("int8" if work.many else "float32"), 1.0)

    monkeypatch.setattr(Fastest, "_measured", measured)
    monkeypatch.setattr("kente.api.using.TOGETHER", 45)  # of 93 lines the last three are few
    found = api.evaluate(run, trained / "test.en", trained / "test.fr", beam=1, threads=1, limit=93)
    assert found.history[-1] == "CTranslate2 int8 and CTranslate2 float32"


# ---------------------------------------------------------------- for other programs


def test_an_exported_run_translates_in_plain_ctranslate2(run: Path, tmp_path: Path, lines: list[str]) -> None:
    from kente.decode.library import ctranslate2

    folder = export(run, tmp_path / "exported")
    translator: Translator = api.load(run, engine="torch", beam=1, threads=1)
    tokenizer = translator.tokenizers.source
    pieces = [tokenizer.pieces(tokenizer.encode(line)) for line in lines[:20]]
    plain = ctranslate2().Translator(str(folder), device="cpu", intra_threads=1)
    found = plain.translate_batch(pieces, beam_size=1, disable_unk=True, max_decoding_length=100)
    texts = ["".join(result.hypotheses[0]).replace("▁", " ").strip() for result in found]
    wanted = [translation.text for translation in translator.translate(lines[:20], split=False)]
    assert sum(text == other for text, other in zip(texts, wanted, strict=True)) >= 17  # plain means unguarded
    assert names(folder / "tokenizer") == names(run / "tokenizer")
    with pytest.raises(UsageError, match="exists already; choose another folder"):
        export(run, folder)


def test_weights_without_torch_are_those_the_model_would_have(run: Path) -> None:
    opened = Run.open(run)
    checkpoint: Checkpoint = opened.chosen()
    assert checkpoint.has("average")
    arrays = opened.arrays(checkpoint)
    model = dict(opened.model(checkpoint).named_parameters())
    assert arrays.keys() == model.keys()
    assert all(torch.equal(torch.from_numpy(arrays[name].copy()), model[name]) for name in model)
    assert isinstance(CTranslate2Engine(folders(run), opened.tokenizers(), lambda: None).name, str)  # type: ignore[arg-type, return-value]
