"""A run as two ONNX graphs that onnxruntime runs: encoder.onnx reads a sentence once, decoder.onnx writes one word further.

Whatever the encoder gives, the decoder takes by the same name, with the `token` written last. It gives the log-probabilities of the next
one, and under `next_NAME` what NAME is at the next step. The batch is the first axis of every tensor: a beam keeps, repeats or reorders
rows. translate.py beside the graphs is a whole translator of that kind, and needs nothing of Kente.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from kente.config import ModelConfig, RecurrentConfig, TransformerConfig
from kente.data.tokenizer import BOS, EOS, PAD
from kente.decode.answers import SLACK
from kente.decode.weights import Weights
from kente.export.onnx_graph import Graph
from kente.export.onnx_recurrent import Attentive, FixedContext
from kente.export.onnx_transformer import Transformer
from kente.export.parts import Parts, borrowed, new_folder, only_here, write_json
from kente.reporting import SILENT, Reporter

RUNNER = "onnx_runner.py"
README = """\
# A translator for onnxruntime

Exported from a run of Kente. `python translate.py "A sentence."` translates with numpy, onnxruntime and {tokenizer}; the code is short and
shows all there is to know.

- `encoder.onnx`: source (batch, length), ids that end with {eos} and are filled up with {pad}, to {memory}.
- `decoder.onnx`: these and token (batch,), at first {bos}, to log_probabilities (batch, {words}) of the next token and {next}.
- `model.json`: ids of the marks, greatest lengths, beam. `tokenizer/`: how text becomes ids.
"""


def obstacle(config: ModelConfig) -> str | None:
    """Why there are no graphs for a model with these settings; None if there are."""
    match config:
        case RecurrentConfig():
            return None
        case TransformerConfig():
            return f"there is no graph for {missing}" if (missing := only_here(config)) else None
        case _:
            return f"there are graphs for recurrent models and Transformers, and this is a {config.kind} model"


def export(run: Path | str, out: Path | str, *, reporter: Reporter = SILENT) -> Path:
    """Write the best weights of `run` to the new folder `out`, with its tokenizer and a translator in one file."""
    parts = Parts.of(run, reporter)
    parts.refuse("ONNX", obstacle(parts.config.model) or borrowed(parts.config.tokenizer))
    encoder, decoder = graphs(parts)
    with new_folder(Path(out), 2 * parts.size) as folder:
        for graph in (encoder, decoder):
            (folder / f"{graph.name}.onnx").write_bytes(graph.to_bytes())
        parts.tokenizers.save(folder / "tokenizer")
        write_json(folder / "model.json", about(parts))
        runner = importlib.resources.files("kente.export").joinpath(RUNNER).read_text(encoding="utf-8")
        (folder / "translate.py").write_text(runner, encoding="utf-8")
        (folder / "README.md").write_text(_readme(parts, encoder, decoder), encoding="utf-8")
    return Path(out)


def graphs(parts: Parts) -> tuple[Graph, Graph]:
    """(encoder, decoder)"""
    left, config = Weights(parts.weights), parts.config.model
    sizes = parts.tokenizers.source.size, parts.tokenizers.target.size
    model: FixedContext | Attentive | Transformer
    match config:
        case TransformerConfig():
            model = Transformer(config, left, sizes)
        case RecurrentConfig(attention="none"):
            model = FixedContext(config, left, sizes)
        case RecurrentConfig():
            model = Attentive(config, left, sizes)
        case _:
            raise AssertionError(f"`obstacle` was not asked about {config.kind}")
    found = model.encoder(), model.decoder()
    left.require_all_taken()
    return found


def about(parts: Parts) -> dict[str, int | float | str]:
    """model.json"""
    decode = parts.config.decode
    return {
        "kind": parts.config.model.kind,
        "max_source_tokens": parts.longest_source,
        "max_target_tokens": parts.positions - 1 if parts.positions else 0,
        "max_ratio": decode.max_ratio,
        "slack": SLACK,
        "beam": decode.beam,
        "length_penalty": decode.length_penalty,
    }


def _readme(parts: Parts, encoder: Graph, decoder: Graph) -> str:
    subwords = parts.tokenizers.source.kind in ("unigram", "bpe")
    return README.format(
        tokenizer="sentencepiece" if subwords else "nothing else",
        pad=PAD,
        bos=BOS,
        eos=EOS,
        words=parts.tokenizers.target.size,
        memory=", ".join(encoder.outputs),
        next=", ".join(decoder.outputs[1:]),
    )
