"""A run as a model folder for any program built on CTranslate2: the run's own pieces are its tokens, its tokenizer lies beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kente.config import TransformerConfig
from kente.decode.conversion import Numbers, convert, obstacle
from kente.export.parts import Parts, borrowed, duplicate, new_folder, pieces_of
from kente.reporting import SILENT, Reporter

PLACES = 1024
"""Places that an exported model has at least: CTranslate2 itself reads so many, and a program need not know where the run would stop."""

README = """\
# A translator for CTranslate2

Exported from a run of Kente, {numbers}. The tokens of the model are the pieces of its tokenizer; the marks for begin and end are added by
CTranslate2 itself.

"""
SUBWORDS = """\
```python
import unicodedata
import ctranslate2, sentencepiece

translator = ctranslate2.Translator(".", device="cpu")
source, target = (sentencepiece.SentencePieceProcessor(model_file=f"tokenizer/{{name}}.model") for name in {names})
pieces = source.encode(unicodedata.normalize("NFC", "A sentence."), out_type=str)
print(target.decode(translator.translate_batch([pieces], beam_size={beam})[0].hypotheses[0]))
```
"""
SYMBOLS = "The tokens are {kind}, listed in tokenizer/*.json: there is no sentencepiece model to cut text with.\n"


def export(run: Path | str, out: Path | str, numbers: Numbers = "float32", *, reporter: Reporter = SILENT) -> Path:
    """Write the best weights of `run` to the new folder `out`; text is cut with the model in out/tokenizer."""
    parts = Parts.of(run, reporter)
    require(parts, "CTranslate2")
    with new_folder(Path(out), parts.size) as folder:
        write(parts, folder, numbers)
        parts.tokenizers.save(folder / "tokenizer")
        (folder / "README.md").write_text(_readme(parts, numbers), encoding="utf-8")
    return Path(out)


def require(parts: Parts, program: str) -> None:
    """Refuse what a program built on CTranslate2 cannot carry."""
    parts.refuse(program, obstacle(parts.config.model) or borrowed(parts.config.tokenizer))
    for side in (parts.tokenizers.source, parts.tokenizers.target):
        parts.refuse(program, duplicate(pieces_of(side)))


def write(parts: Parts, folder: Path, numbers: Numbers) -> None:
    """The model itself, into a folder that exists and is empty."""
    assert isinstance(parts.config.model, TransformerConfig), "`require` was not asked"
    vocabularies = pieces_of(parts.tokenizers.source), pieces_of(parts.tokenizers.target)
    settings = replace(parts.config.model, max_length=max(parts.config.model.max_length, PLACES))
    convert(settings, parts.weights, vocabularies, folder, numbers=numbers)


def _readme(parts: Parts, numbers: Numbers) -> str:
    kind = parts.tokenizers.source.kind
    if kind in ("characters", "words"):
        return README.format(numbers=numbers) + SYMBOLS.format(kind=kind)
    names = ("joint", "joint") if parts.tokenizers.joint else ("source", "target")
    return README.format(numbers=numbers) + SUBWORDS.format(names=names, beam=parts.config.decode.beam)
