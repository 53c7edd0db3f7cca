"""A run as a model folder for any program built on CTranslate2: the run's own pieces are its tokens, its tokenizer lies beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

from kente.config import TransformerConfig
from kente.decode.conversion import Numbers, convert, obstacle
from kente.errors import UsageError
from kente.runs import Run


def export(run: Path | str, out: Path | str, numbers: Numbers = "float32") -> Path:
    """Write the best weights of `run` to the new folder `out`; text is cut with the model in out/tokenizer."""
    opened, folder = Run.open(run), Path(out)
    config = opened.config.model
    why = obstacle(config)
    if why is not None:
        raise UsageError(f"{opened.path} cannot be exported to CTranslate2: {why}")
    assert isinstance(config, TransformerConfig)
    checkpoint = opened.chosen()
    tokenizers = opened.tokenizers(checkpoint)
    source, target = (side.pieces(range(side.size)) for side in (tokenizers.source, tokenizers.target))
    for pieces in (source, target):
        if len(set(pieces)) < len(pieces):
            twice = next(piece for place, piece in enumerate(pieces) if piece in pieces[:place])
            raise UsageError(f"{opened.path} cannot be exported: two of its tokens read {twice!r}")
    if folder.exists():
        raise UsageError(f"{folder} exists already; choose another folder")
    folder.mkdir(parents=True)
    convert(config, opened.arrays(checkpoint), (source, target), folder, numbers=numbers)
    shutil.copytree(opened.path / "tokenizer", folder / "tokenizer")
    return folder
