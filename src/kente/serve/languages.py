"""The languages of the runs that are served, by their codes, and what they are called in English."""

from __future__ import annotations

from pathlib import Path

from kente.errors import RunError, UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.serve.names import NAMES
from kente.serve.translators import Pair
from kente.serve.wording import UNNAMED, Detector, is_code


def name_of(code: str) -> str:
    """What a language is called in English; its code where we do not know."""
    language, *rest = code.split("-")
    if language not in NAMES:
        return code
    return f"{NAMES[language]} ({', '.join(rest)})" if rest else NAMES[language]


def codes_of(text: str) -> tuple[str, str]:
    """ "en,pt-BR" -> ("en", "pt-BR")."""
    codes = [code.strip() for code in text.split(",")]
    if len(codes) != 2 or not all(map(is_code, codes)) or codes[0] == codes[1]:
        raise UsageError(f"--languages {text}: two codes are wanted, source and target, such as en,twi or en,pt-BR")
    return codes[0], codes[1]


def served(
    run: Path, codes: tuple[str, str] | None = None, reporter: Reporter = SILENT
) -> tuple[Pair, Detector | None]:
    """A run as it is served, and what it knows of its languages. `codes` overrule how it calls them."""
    opened = Run.open(run)
    try:
        known = opened.languages(reporter)
    except RunError as error:
        decode = opened.config.decode  # a model of many languages is told which
        codes = codes or (decode.source_language, decode.target_language)
        if not all(map(is_code, codes)):
            raise RunError(f"{error}; --languages A,B says which they are") from None
        return Pair(*codes, run), None
    if codes is None:
        codes = known.source, known.target
        if codes == UNNAMED:
            reporter.warn(
                f"nothing says which languages {run} translates: they are called {', '.join(codes)}; --languages A,B says it"
            )
    names = dict(zip((known.source, known.target), codes, strict=True))
    languages = {names[code]: language for code, language in known.detector.languages.items()}
    return Pair(*codes, run, known.lowercase), Detector(languages)
