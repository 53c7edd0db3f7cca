"""A run as a package that Argos Translate installs, and with it LibreTranslate: one file that holds a model of CTranslate2, a
sentencepiece model and a splitter of sentences. It works without a network."""

from __future__ import annotations

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import kente
from kente.config import Config
from kente.decode import conversion
from kente.decode.conversion import Numbers
from kente.export import ctranslate2
from kente.export.languages import languages_of
from kente.export.parts import Parts, borrowed, new_folder, write_json
from kente.export.sentence_splitter import splitter
from kente.export.sentencepiece_file import for_both_sides, letters
from kente.reporting import SILENT, Reporter

ARGOS_VERSION = "1.11"
"""The first version that looks for a splitter of sentences in a package."""
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""When every file of a package was written: the same run gives the same bytes."""

README = """\
# {source} to {target}

Exported from a run of Kente, for Argos Translate and LibreTranslate.
"""


def obstacle(config: Config) -> str | None:
    """Why Argos cannot carry a run with these settings; None if it can."""
    kind = config.tokenizer.kind
    if kind in ("characters", "words"):
        return f"it cuts text with sentencepiece, and this run's tokens are {kind}"
    return conversion.obstacle(config.model) or borrowed(config.tokenizer)


def export(
    run: Path | str,
    out: Path | str,
    numbers: Numbers = "float32",
    *,
    languages: tuple[str, str] | None = None,
    names: tuple[str, str] | None = None,
    reporter: Reporter = SILENT,
) -> Path:
    """Write the package into the new folder `out`. `languages` are codes, by default the endings of the corpus's file names; `names` are
    what people call them."""
    parts = Parts.of(run, reporter)
    parts.refuse("Argos", obstacle(parts.config))
    ctranslate2.require(parts, "Argos")
    codes = languages_of(parts.path, languages)
    with new_folder(Path(out), 2 * parts.size) as folder, TemporaryDirectory(dir=folder) as scratch:
        package = Path(scratch) / f"{codes[0]}_{codes[1]}"
        _fill(package, parts, numbers, codes, names or codes)
        _zip(package, folder / f"translate-{codes[0]}_{codes[1]}.argosmodel")
    return Path(out)


def _fill(package: Path, parts: Parts, numbers: Numbers, codes: tuple[str, str], names: tuple[str, str]) -> None:
    for folder in (package / "model", package / "minisbd"):
        folder.mkdir(parents=True)
    ctranslate2.write(parts, package / "model", numbers)
    (package / "sentencepiece.model").write_bytes(for_both_sides(parts.tokenizers))
    (package / "minisbd" / "kente.onnx").write_bytes(splitter(codes[0], letters(parts.tokenizers.source)))
    (package / "README.md").write_text(README.format(source=names[0], target=names[1]), encoding="utf-8")
    write_json(
        package / "metadata.json",
        {
            "package_version": kente.__version__,
            "argos_version": ARGOS_VERSION,
            "from_code": codes[0],
            "from_name": names[0],
            "to_code": codes[1],
            "to_name": names[1],
        },
    )


def _zip(package: Path, path: Path) -> None:
    """The folder as one file, itself its only entry at the top."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(str(file.relative_to(package.parent)), LONG_AGO)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
