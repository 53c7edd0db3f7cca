"""Translators that begin with what others have learned: parts of other runs, or all of one that is to learn more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from kente import api
from kente.api.adapting import _base as base_of
from kente.config import BatchConfig, TransferConfig, TransformerConfig
from kente.configfile import apply
from kente.data.batches import Batches
from kente.data.mixing import Mixed
from kente.data.store import Store
from kente.data.toys import toy
from kente.errors import ConfigError, RunError, UsageError
from kente.models.build import build
from kente.runs import Run
from kente.train.budget import automatic
from kente.train.transfer import GROUPS, Parent, part_of, restrict

SHAPE = (
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.width=32",
    "model.feedforward=64",
    "model.heads=2",
    "batches.tokens=512",
    "batches.max_length=64",
)
STACK = ("model.layers=1", "model.width=32", "model.feedforward=64", "model.heads=2", "batches.tokens=512")
SHORT = ("batches.max_length=32", "train.validate_sentences=20", "train.log_every=4")


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> api.Data:
    for side, lines in zip("ab", zip(*pairs, strict=True), strict=True):
        (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    return api.Data(folder / f"{name}.a", folder / f"{name}.b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, and a translator, a language model and a masked encoder trained on it for a moment."""
    folder = tmp_path_factory.mktemp("transfer")
    old = write(folder, "old", toy("reverse", 300, seed=1, max_length=6, symbols="abcdef"))
    write(folder, "new", toy("sort", 200, seed=2, max_length=6, symbols="abcxyz"))
    api.train(old, folder / "parent", updates=20, threads=1, settings=("tokenizer.kind=words", *SHAPE, *SHORT))
    for kind in ("causal", "masked"):
        how = {"tokenizer": "words", "updates": 4, "threads": 1, "settings": (*STACK, *SHORT)}
        api.pretrain([folder / "old.a"], folder / kind, kind=kind, **how)
    return folder


def data(folder: Path, name: str = "new") -> api.Data:
    return api.Data(folder / f"{name}.a", folder / f"{name}.b")


def adapt(folder: Path, out: Path, *settings: str, **options):
    how = {"updates": 6, "threads": 1, "settings": (*SHORT, *settings)} | options
    return api.adapt(folder / "parent", data(folder), out, **how)


def start(run: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(run / "start.safetensors")


# --- beginning with parts of other runs ---


@pytest.mark.parametrize(
    ("encoder", "decoder"), [("masked", "causal"), ("causal", None), (None, "masked"), ("parent", "parent")]
)
def test_a_translator_begins_with_the_weights_of_other_runs(folder, tmp_path, encoder, decoder):
    begin = {"encoder_from": encoder and folder / encoder, "decoder_from": decoder and folder / decoder}
    result = api.train(data(folder, "old"), tmp_path / "run", **begin, updates=2, threads=1, settings=SHORT)
    facts = json.loads((result.run.path / "prepared.json").read_text())["begun_from"]
    assert facts["carried"] > 0 and {part for part in ("encoder", "decoder") if part in facts} == {
        part for part, name in (("encoder", encoder), ("decoder", decoder)) if name
    }
    begun, model = start(result.run.path), result.run.model()
    for part, name in (("encoder", encoder), ("decoder", decoder)):
        if name is None:
            assert not any(part_of(weight) == part for weight in begun)
            continue
        parent = Parent.open(folder / name)
        stack = {"causal": "layers", "masked": "encoder", "parent": part}[name]
        own = parent.weights[f"{stack}.layers.0.feedforward.inner.weight"]
        assert torch.equal(begun[f"{part}.layers.0.feedforward.inner.weight"], own)
        assert model.config.width == parent.config.width
    assert torch.isfinite(torch.cat([p.flatten() for p in model.parameters()])).all()
    assert "began with the" in (result.run.path / "README.md").read_text()


def test_runs_with_one_tokenizer_share_it_and_a_side_without_a_run_learns_its_own(folder, tmp_path):
    text = folder / "old.a"
    api.pretrain([text], tmp_path / "lm", tokenizer=folder / "masked", updates=2, threads=1, settings=(*STACK, *SHORT))
    both = {"encoder_from": folder / "masked", "decoder_from": tmp_path / "lm"}
    shared = api.train(data(folder, "old"), tmp_path / "shared", **both, updates=1, threads=1, settings=SHORT).run
    assert shared.config.tokenizer.joint and shared.config.model.tie == "target"
    assert shared.tokenizers().source.sha256 == Run.open(folder / "masked").tokenizers().source.sha256
    one = api.train(
        data(folder, "new"), tmp_path / "one", encoder_from=folder / "masked", updates=1, threads=1, settings=SHORT
    ).run
    tokenizers = one.tokenizers()
    assert not one.config.tokenizer.joint and tokenizers.source.sha256 != tokenizers.target.sha256
    assert "x" in tokenizers.target.pieces(range(tokenizers.target.size))


def test_a_decoder_that_never_saw_a_source_begins_as_the_language_model(folder, tmp_path):
    from kente.models.build import build as make
    from kente.train.transfer import begin_with

    begin = {"decoder_from": folder / "causal", "encoder_from": folder / "causal"}
    run = api.train(data(folder, "old"), tmp_path / "run", **begin, updates=1, threads=1, settings=SHORT).run
    parent = Parent.open(folder / "causal")
    size = run.tokenizers().target.size
    translator = make(run.config.model, size, size).eval()
    begin_with(translator, run)
    target = torch.tensor([[2, 5, 6, 7]])
    source = torch.tensor([[4, 5, 3]])
    with torch.inference_mode():
        ours = translator.predict(translator(source, source != 0, target))
        theirs = parent.model.predict(parent.model(source[:, :0], source[:, :0] != 0, target))
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_new_vocabulary_is_mapped_by_the_text_of_its_pieces(folder, tmp_path):
    settings = (*SHORT, "tokenizer.kind=characters")
    begin = {"encoder_from": folder / "masked", "decoder_from": folder / "masked"}
    run = api.train(data(folder, "old"), tmp_path / "run", **begin, updates=1, threads=1, settings=settings).run
    parent, tokenizer = Parent.open(folder / "masked"), run.tokenizers().source
    assert tokenizer.kind == "characters"
    table, begun = parent.table("encoder"), start(run.path)["source_embedding.weight"]
    assert torch.equal(begun[:4], table[:4]) and begun.shape[0] == tokenizer.size
    assert not torch.equal(begun, table)  # their other rows stand for other text


def test_recurrent_language_models_hand_on_their_cells(folder, tmp_path):
    small = ("model.width=16", "model.embedding=12", *SHORT)
    how = {"tokenizer": "words", "recipe": "gru-language", "updates": 2, "threads": 1, "settings": small}
    api.pretrain([folder / "old.a"], tmp_path / "lm", **how)
    begin = {"encoder_from": tmp_path / "lm", "decoder_from": tmp_path / "lm"}
    run = api.train(data(folder, "old"), tmp_path / "run", **begin, updates=1, threads=1, settings=SHORT).run
    begun, parent = start(run.path), Parent.open(tmp_path / "lm")
    assert run.config.model.kind == "recurrent" and run.config.model.cell == "gru"
    for name in ("encoder.layers.0.forwards.input.weight", "cell.input.weight"):
        assert torch.equal(begun[name], parent.weights["layers.layers.0.forwards.input.weight"])


def test_runs_that_do_not_fit_together_are_refused(folder, tmp_path):
    wide = ("model.layers=1", "model.width=48", "model.feedforward=64", "model.heads=2", *SHORT)
    api.pretrain([folder / "old.a"], tmp_path / "wide", tokenizer="words", updates=1, threads=1, settings=wide)
    begin = {"encoder_from": folder / "masked", "decoder_from": tmp_path / "wide"}
    with pytest.raises(ConfigError, match=r"do not fit together: model.width is 32 in one and 48 in the other"):
        api.train(data(folder, "old"), tmp_path / "run", **begin, updates=1)
    for setting in ("model.width=64", "model.heads=4", "model.positions=rotary", "model.activation=relu"):
        named = setting.replace("=", " = ")
        with pytest.raises(
            ConfigError, match=rf"{named} does not go with the weights of .*masked.*leave settings of \[model\]"
        ):
            api.train(
                data(folder, "old"), tmp_path / "other", encoder_from=folder / "masked", updates=1, settings=(setting, *SHORT)
            )  # fmt: skip
    assert not (tmp_path / "other").exists()
    with pytest.raises(UsageError, match="is the run to begin from; choose another folder"):
        api.train(data(folder, "old"), folder / "masked", encoder_from=folder / "masked", updates=1, force=True)


def test_the_part_that_is_begun_with_may_stay_as_it_is(folder, tmp_path):
    how = {"encoder_from": folder / "masked", "updates": 4, "threads": 1}
    run = api.train(data(folder, "old"), tmp_path / "run", settings=("transfer.freeze=encoder", *SHORT), **how).run
    begun, latest = start(run.path), run.latest().load("model")
    assert any(part_of(name) == "encoder" for name in latest)
    for name, tensor in latest.items():
        assert (name in begun and torch.equal(tensor, begun[name])) == (part_of(name) == "encoder"), name
    with pytest.raises(ConfigError, match="this model has no encodr; did you mean encoder"):
        api.train(data(folder, "old"), tmp_path / "typo", settings=("transfer.freeze=encodr",), **how)
    with pytest.raises(UsageError, match=r"transfer.lora is for `kente adapt`$"):
        api.train(data(folder, "old"), tmp_path / "typo", settings=("transfer.lora=2",), **how)
    with pytest.raises(
        UsageError, match=r"transfer.freeze is for `kente adapt`, and with --encoder-from or --decoder-from"
    ):
        api.train(data(folder, "old"), tmp_path / "typo", settings=("transfer.freeze=encoder",), updates=1)
    assert not (tmp_path / "typo").exists()


# --- adapting ---


def test_an_adapted_run_begins_as_its_parent_and_says_old_and_new_scores(folder, tmp_path):
    result = adapt(folder, tmp_path / "run")
    parent, begun = Parent.open(folder / "parent"), start(tmp_path / "run")
    assert all(torch.equal(begun[name], tensor) for name, tensor in parent.model.named_parameters())
    scores = result.as_dict()["scores"]
    assert set(scores) == {"old", "new"}
    assert all(set(scores[text][when]) == {"bleu", "chrf"} for text in scores for when in ("before", "after"))
    metrics = [r["validation"] for r in result.run.read("metrics") if "validation" in r]
    assert {"loss", "bleu", "chrf", "old_bleu", "old_chrf"} <= set(metrics[-1])
    card = (tmp_path / "run" / "README.md").read_text()
    assert "adapted from parent" in card and "| old text, bleu |" in card
    assert len(result.table()) == 5 and api.info(tmp_path / "run")["adapted_from"]["parent"] == "parent"
    known = api.evaluate(folder / "parent", folder / "new.a", folder / "new.b", beam=1, engine="torch", limit=5)
    assert known.sentences == 5  # the parent still is what it was


def test_words_are_added_and_the_old_ones_keep_their_vectors(folder, tmp_path):
    run = adapt(folder, tmp_path / "run", grow_vocabulary=10).run
    parent, tokenizers = Parent.open(folder / "parent"), run.tokenizers()
    old = parent.tokenizers.source.size
    assert tokenizers.source.size == old + 3 and run.config.tokenizer.vocabulary == old + 3
    assert set(tokenizers.source.pieces(range(old, old + 3))) == {"x", "y", "z"}
    assert torch.equal(start(run.path)["source_embedding.weight"][:old], parent.table("encoder"))
    assert api.load(run.path, engine="torch").translate(["x y z"])[0].text is not None


def test_frozen_parts_stay_bit_for_bit(folder, tmp_path):
    run = adapt(folder, tmp_path / "run", freeze="encoder,words").run
    parent, latest = Parent.open(folder / "parent").weights, run.latest().load("model")
    for name, tensor in latest.items():
        assert torch.equal(tensor, parent[name]) == (part_of(name) in ("encoder", "words")), name


def test_low_rank_runs_are_plain_translators_for_everybody_else(folder, tmp_path):
    run = adapt(folder, tmp_path / "run", lora=4).run
    raw, parent = run.latest().load("model"), Parent.open(folder / "parent")
    assert any(name.endswith(".down") for name in raw)
    fixed = {name: tensor for name, tensor in raw.items() if ".fixed." in name}
    assert fixed and all(torch.equal(t, parent.weights[name.replace(".fixed.", ".")]) for name, t in fixed.items())
    model = run.model()
    assert {name for name, _ in model.named_parameters()} == {name for name, _ in parent.model.named_parameters()}
    arrays = run.arrays(run.chosen())
    assert all(torch.allclose(torch.from_numpy(arrays[name]), p) for name, p in model.named_parameters())
    answers = [api.load(run.path, engine=engine, beam=1).translate(["a b c"])[0].text for engine in ("torch", "auto")]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "more", [{"replay": 0.5, "grow_vocabulary": 5}, {"lora": 2, "replay": 0.25}, {"freeze": "decoder"}]
)
def test_stopped_and_resumed_it_ends_with_the_same_weights(folder, tmp_path, more):
    whole = adapt(folder, tmp_path / "whole", "train.validate_every=3", **more).run
    halved = adapt(folder, tmp_path / "halved", "train.validate_every=3", **more).run
    shutil.rmtree(halved.checkpoints()[-1].path)
    assert halved.latest().step < 6
    result = api.resume(halved.path)
    shas = [api.info(run.path)["weights_sha256"] for run in (whole, halved)]
    assert shas[0] == shas[1] and result.step == 6 and result.as_dict()["scores"]["old"]["after"]


def test_a_kill_before_the_first_checkpoint_begins_at_the_same_weights(folder, tmp_path):
    run = adapt(folder, tmp_path / "run").run
    wanted = api.info(run.path)["weights_sha256"]
    shutil.rmtree(run.path / "checkpoints")
    api.resume(run.path, threads=1)
    assert api.info(run.path)["weights_sha256"] == wanted
    shutil.rmtree(run.path / "checkpoints")
    (run.path / "start.safetensors").unlink()
    with pytest.raises(RunError, match=r"start.safetensors is gone"):
        api.resume(run.path, threads=1)


def test_replay_repeats_the_old_text_but_nothing_that_is_validated_on(folder, tmp_path):
    run = adapt(folder, tmp_path / "run", replay=0.5, grow_vocabulary=5).run
    tokenizers = run.tokenizers()
    store = Store.open(run.path / "data" / "old", tokenizers.sha256)
    replayed = {tokenizers.source.decode(store.source(row)) for row in range(len(store))}
    parent = Run.open(folder / "parent")
    known = Store.open(parent.path / "data" / "train", parent.tokenizers().sha256)
    everything = {parent.tokenizers().source.decode(known.source(row)) for row in range(len(known))}
    validated = set((run.path / "data" / "validation.source").read_text().split("\n"))
    held_out = set((run.path / "data" / "old-validation.source").read_text().split("\n")) - {""}
    assert held_out == set((folder / "parent" / "data" / "validation.source").read_text().split("\n")) - {""}
    assert replayed == everything - validated and not replayed & held_out
    metrics = [r["validation"] for r in run.read("metrics") if "validation" in r][-1]
    assert metrics["kept"] == pytest.approx((metrics["bleu"] + metrics["old_bleu"]) / 2)
    assert run.best().score.name == "BLEU (50% new, 50% old text)"


def test_what_was_adapted_can_be_adapted_again_and_still_knows_the_first_text(folder, tmp_path):
    first = adapt(folder, tmp_path / "first", replay=0.5).run
    how = {"updates": 2, "threads": 1, "settings": SHORT, "replay": 0.5}
    second = api.adapt(first.path, data(folder, "old"), tmp_path / "second", **how).run
    pairs = (second.path / "data" / "old-validation.source").read_text().split("\n")
    assert len(pairs) > len((first.path / "data" / "validation.source").read_text().split("\n"))


def test_a_run_without_its_text_asks_for_it(folder, tmp_path):
    shutil.copytree(folder / "parent", tmp_path / "bare")
    shutil.rmtree(tmp_path / "bare" / "data")
    how = {"updates": 1, "threads": 1, "settings": SHORT}
    with pytest.raises(RunError, match=r"no longer holds the text.*--old-source"):
        api.adapt(tmp_path / "bare", data(folder), tmp_path / "run", replay=0.5, **how)
    result = api.adapt(tmp_path / "bare", data(folder), tmp_path / "run", replay=0.5, old=data(folder, "old"), **how)
    assert set(result.as_dict()["scores"]) == {"old", "new"}
    alone = api.adapt(tmp_path / "bare", data(folder), tmp_path / "alone", **how)
    assert set(alone.as_dict()["scores"]) == {"new"}


def test_how_fast_a_parent_was_multiplied_says_nothing_about_this_machine(folder):
    parent = apply(Run.open(folder / "parent").config, {"train": {"precision": "bfloat16", "label_smoothing": 0.2}})
    assert (base_of(parent).train.precision, base_of(parent).train.label_smoothing) == ("float32", 0.2)


def test_what_cannot_be_adapted_is_refused(folder, tmp_path):
    with pytest.raises(RunError, match="is a language model; kente adapt needs a translator"):
        api.adapt(folder / "causal", data(folder), tmp_path / "run")
    with pytest.raises(UsageError, match=r"model.width cannot change while adapting"):
        adapt(folder, tmp_path / "run", "model.width=64")
    with pytest.raises(UsageError, match="leave out --recipe"):
        adapt(folder, tmp_path / "run", recipe="tiny")
    with pytest.raises(UsageError, match="is the run to adapt, which stays as it is"):
        adapt(folder, folder / "parent", force=True)
    with pytest.raises(ConfigError, match=r"transfer.replay \(1.0\) must be at least 0 and below 1"):
        adapt(folder, tmp_path / "run", replay=1.0)
    finished = api.info(adapt(folder, tmp_path / "run").run.path)["weights_sha256"]
    with pytest.raises(ConfigError, match="this model has no encodr; did you mean encoder"):
        adapt(folder, tmp_path / "run", freeze="encodr", force=True)
    assert api.info(tmp_path / "run")["weights_sha256"] == finished, "the run that was to be replaced is still there"


def test_marked_sentences_that_are_validated_on_are_not_learned_from(folder, tmp_path):
    """Whatever their mark is, in more pairs as in what is replayed."""
    marked = [
        (f"{tag} {source}", target)
        for tag in ("<st>", "<mine>")
        for source, target in toy("sort", 200, seed=2, max_length=6, symbols="abcxyz")
    ]
    (tmp_path / "also.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in marked))
    how = {"updates": 1, "threads": 1}
    tags = ("tokenizer.kind=words", "tokenizer.tags=<mine>", *SHAPE, *SHORT)
    parent = api.train(
        data(folder, "new"), tmp_path / "parent", also=[api.Data(pairs=tmp_path / "also.tsv")], settings=tags, **how
    ).run

    def learned(run: Run, name: str) -> set[str]:
        tokenizers = run.tokenizers()
        store = Store.open(run.path / "data" / name, tokenizers.sha256)
        return {tokenizers.source.decode(store.source(row)) for row in range(len(store))}

    def validated(run: Run) -> set[str]:
        return set((run.path / "data" / "validation.source").read_text().splitlines())

    assert len(learned(parent, "train")) > 50 and not learned(parent, "train") & validated(parent)
    (tmp_path / "some.a").write_text("".join(f"{source}\n" for source in sorted(learned(parent, "train"))[:20]))
    (tmp_path / "some.b").write_text(
        "".join(f"{' '.join(sorted(source.split()))}\n" for source in sorted(learned(parent, "train"))[:20])
    )
    kept_apart = api.Data(tmp_path / "some.a", tmp_path / "some.b")
    run = api.adapt(
        parent.path, data(folder, "old"), tmp_path / "run", validation=kept_apart, replay=0.5, settings=SHORT, **how
    ).run
    assert len(validated(run)) > 5 and learned(run, "old") and not learned(run, "old") & validated(run)


def test_prepared_again_after_a_kill_it_learns_at_the_same_rate(folder, tmp_path):
    run = adapt(folder, tmp_path / "run", "train.patience=1", "train.max_updates=2", updates=None).run
    rate = run.config.optimiser.rate
    shutil.rmtree(run.path / "checkpoints")
    (run.path / "prepared.json").unlink()
    assert api.resume(run.path, threads=1).run.config.optimiser.rate == rate < automatic().optimiser.rate


# --- the parts ---


def test_every_weight_of_a_transformer_belongs_to_the_group_its_name_says():
    model = build(TransformerConfig(encoder_layers=1, decoder_layers=1, width=8, feedforward=8, heads=2), 9, 9)
    names = [name for name, _ in model.named_parameters()]
    counts = {group: sum(map(belongs, names)) for group, belongs in GROUPS.items()}
    assert counts["words"] == 1 and counts["encoder"] + counts["decoder"] == len(names) - 1
    assert counts["attention"] == 2 + 2 + 3 and counts["cross"] == 3 and counts["feedforward"] == 8
    assert counts["norms"] == 10


def test_freezing_everything_is_refused_and_low_rank_lets_new_words_learn():
    def model():
        return build(TransformerConfig(encoder_layers=1, decoder_layers=1, width=8, feedforward=8, heads=2), 9, 9)

    with pytest.raises(ConfigError, match="leaves nothing to learn"):
        restrict(model(), TransferConfig(freeze="words,encoder,decoder"))
    grown = restrict(model(), TransferConfig(lora=2, grow_vocabulary=5))
    assert grown.source_embedding.weight.requires_grad
    assert not restrict(model(), TransferConfig(lora=2)).source_embedding.weight.requires_grad
    half = restrict(model(), TransferConfig(lora=2, freeze="encoder"))
    learning = {name for name, parameter in half.named_parameters() if parameter.requires_grad}
    assert learning and all(part_of(name) == "decoder" for name in learning)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75])
def test_the_old_is_replayed_as_often_as_asked_and_nothing_is_left_out(folder, share):
    run = Run.open(folder / "parent")
    store = Store.open(run.path / "data" / "train", run.tokenizers().sha256)
    config = BatchConfig(tokens=64, max_length=32)
    new, old = Batches(store, config, seed=1), Batches(store, config, seed=2)
    mixed, steps = Mixed(new, old, share), 200
    batches = [mixed.batch(step) for step in range(steps)]
    taken = {"old": 0, "new": 0}
    for batch in batches:
        for name, feed in (("old", old), ("new", new)):
            expected = feed.batch(taken[name])
            if list(batch.rows) == list(expected.rows):
                taken[name] += 1
                break
        else:
            raise AssertionError("a batch that is neither the next old nor the next new one")
    assert taken["old"] == int(steps * share) and sum(taken.values()) == steps
    assert list(mixed.batch(57).rows) == list(batches[57].rows)  # a seek, not a memory
    assert len(mixed) == pytest.approx(len(new) / (1 - share), abs=1)
