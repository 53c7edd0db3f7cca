"""transformers' side of benchmarks/imports.py: random models made from published settings, or a real one, and what they make of some texts.

    python -m benchmarks.checks.imports LAYOUT FOLDER OUT --texts FILE [--lines 12] [--quick]

writes the model to FOLDER (save_pretrained) and what it says of the texts to OUT/reference.{json,npz}. With the layout `given`, FOLDER holds a model
already. Nothing of Kente is imported here.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers

SIZES = {
    "bert": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "gpt2": {"n_embd": 768, "n_layer": 12, "n_head": 12},
    "marian": {
        "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
        "encoder_attention_heads": 8, "decoder_attention_heads": 8, "activation_function": "swish", "scale_embedding": True,
        "max_position_embeddings": 512,
    },
    "m2m100": {
        "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "decoder_attention_heads": 16, "activation_function": "relu", "scale_embedding": True,
    },
}  # fmt: skip
"""Of bert-base, GPT-2's smallest, opus-mt and M2M100 with 418 million parameters, as published; words are fewer."""
QUICK = {
    "bert": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4},
    "marian": {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96},
    "m2m100": {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96},
}
NEW_TOKENS = 24
transformers.logging.set_verbosity_error()


def sentencepiece_model(texts: list[str], size: int) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(3, processor.vocab_size())]


# ---------------------------------------------------------------- tokenizers, written as each layout has them


def bert_files(folder: Path, texts: list[str]) -> int:
    trainer = tokenizers.BertWordPieceTokenizer()
    trainer.train_from_iterator(texts, vocab_size=2000, show_progress=False)
    vocabulary = trainer.get_vocab()
    names = sorted(vocabulary, key=lambda piece: vocabulary[piece])
    (folder / "vocab.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    transformers.BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    return len(names)


def gpt2_files(folder: Path, texts: list[str]) -> int:
    trainer = tokenizers.ByteLevelBPETokenizer()
    trainer.train_from_iterator(texts, vocab_size=2000, special_tokens=[], show_progress=False)
    trainer.save_model(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["<|endoftext|>"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return len(vocabulary)


def marian_files(folder: Path, texts: list[str]) -> int:
    models = [sentencepiece_model(texts[0::2], 800), sentencepiece_model(texts[1::2], 800)]
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
    names = ["</s>", "<unk>", *dict.fromkeys([*pieces_of(models[0]), *pieces_of(models[1])]), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(names)}))
    return len(names)


def m2m100_files(folder: Path, texts: list[str]) -> int:
    model = sentencepiece_model(texts, 1000)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model)]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(names)}))
    return len(names) + 100 + 8  # languages, and words that were made up to fill the table


# ---------------------------------------------------------------- models


def made(layout: str, folder: Path, texts: list[str], quick: bool) -> Any:
    """A model with random weights, and no bias or norm as it is at the start: whatever is forgotten shows."""
    folder.mkdir(parents=True)
    files = {"bert": bert_files, "gpt2": gpt2_files, "marian": marian_files, "m2m100": m2m100_files}
    size = files[layout](folder, texts)
    how = {**SIZES[layout], **(QUICK[layout] if quick else {}), "vocab_size": size}
    match layout:
        case "bert":
            model: Any = transformers.BertForMaskedLM(transformers.BertConfig(**how))
        case "gpt2":
            marks = {"bos_token_id": size - 1, "eos_token_id": size - 1}
            model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**how, **marks))
        case "marian":
            pad = size - 1
            marks = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": None}
            model = transformers.MarianMTModel(transformers.MarianConfig(**how, **marks))
        case _:
            model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**how))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # Marian's sinusoids do not learn
                parameter.add_(torch.randn_like(parameter) * 0.05)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(std=0.5)
    model.save_pretrained(folder)
    return model.eval()


@torch.inference_mode()
def reference(layout: str, model: Any, folder: Path, texts: list[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(what is small, what is large) of each text: ids, greedy answer; hidden states, logits."""
    lines, arrays = [], {}
    how = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "num_beams": 1}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for number, text in enumerate(texts):
        line: dict[str, Any] = {"text": text}
        match layout:
            case "bert" | "given":
                batch = tokenizer(text, return_tensors="pt", truncation=True)
                out = model(**batch, output_hidden_states=True)
                hidden = out.hidden_states[-1][0]
                if layout == "bert":
                    arrays[f"logits.{number}"] = out.logits[0].numpy()
                else:
                    mean = hidden.mean(0)
                    arrays[f"sentence.{number}"] = (mean / mean.norm()).numpy()
            case "gpt2":
                ids = torch.tensor([[model.config.eos_token_id, *tokenizer(text)["input_ids"]]])
                batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
                out = model(**batch, output_hidden_states=True)
                hidden, arrays[f"logits.{number}"] = out.hidden_states[-1][0], out.logits[0].numpy()
                line["greedy"] = model.generate(**batch, **how)[0, ids.shape[1] :].tolist()
            case _:
                begin = {}
                if layout == "m2m100":
                    tokenizer.src_lang = "en"
                    begin = {"forced_bos_token_id": tokenizer.get_lang_id("fr")}
                batch = tokenizer(text, return_tensors="pt")
                forbidden = [model.config.pad_token_id, tokenizer.unk_token_id]
                line["greedy"] = model.generate(**batch, **how, **begin, suppress_tokens=forbidden)[0].tolist()
                out = model(**batch, decoder_input_ids=torch.tensor([line["greedy"]]), output_hidden_states=True)
                hidden, arrays[f"logits.{number}"] = out.encoder_last_hidden_state[0], out.logits[0].numpy()
        line["ids"] = batch["input_ids"][0].tolist()
        arrays[f"hidden.{number}"] = hidden.numpy()
        lines.append(line)
    return lines, arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layout", choices=("bert", "gpt2", "marian", "m2m100", "given"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, help="where the reference goes")
    parser.add_argument(
        "--texts", type=Path, required=True, help="JSON: a list of texts; the first are read by the model"
    )
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    texts = json.loads(options.texts.read_text(encoding="utf-8"))
    torch.manual_seed(0)
    if options.layout == "given":
        model = transformers.AutoModel.from_pretrained(options.folder, local_files_only=True).eval()
    else:
        model = made(options.layout, options.folder, texts, options.quick)
    lines, arrays = reference(options.layout, model, options.folder, texts[: options.lines])
    options.out.mkdir(parents=True, exist_ok=True)
    np.savez(options.out / "reference.npz", **arrays)
    (options.out / "reference.json").write_text(json.dumps(lines, ensure_ascii=False), encoding="utf-8")
    print(json.dumps({"parameters": sum(parameter.numel() for parameter in model.parameters())}))


if __name__ == "__main__":
    main()
