"""The engine of `kente check`: what is wrong with a corpus, how it shows, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kente.config import CleaningConfig
from kente.data.cleaning import CONTROL, DUPLICATE, EMPTY, IDENTICAL, RATIO, SCRIPT, TOO_LONG, CleaningReport, share
from kente.data.corpus import Corpus, Pair, count_lines, read_lines
from kente.data.findings import Finding, Report, Severity
from kente.data.keys import contains, join_keys
from kente.data.shift import Shift, find_shift, shift_of
from kente.data.survey import ODD_CHARACTERS, Side, Survey, Tally
from kente.errors import CorpusError
from kente.reporting import SILENT, Reporter


def examine(
    corpus: Corpus,
    validation: Corpus | None = None,
    test: Corpus | None = None,
    config: CleaningConfig | None = None,
    reporter: Reporter = SILENT,
) -> Report:
    """Look at a training corpus, and at what it is to be judged by."""
    config = config or CleaningConfig()
    findings, survey = _alone("training", corpus, config, reporter)
    findings += _content(survey, config)
    held_out: dict[str, Survey] = {}
    for role, other in (("validation", validation), ("test", test)):
        if other is not None:
            try:
                more, held_out[role] = _alone(role, other, config, reporter)
            except CorpusError as error:  # the training text can still be judged
                more = [Finding("readable", "error", f"{role} text", str(error))]
            findings += more
    findings += _leakage({"training": survey, **held_out})
    findings += _coverage(survey, held_out)
    return Report(corpus.name, survey.pairs, tuple(findings))


def _alone(role: str, corpus: Corpus, config: CleaningConfig, reporter: Reporter) -> tuple[list[Finding], Survey]:
    """What is said of every text by itself: do its sides have as many lines, do they run beside each other, is it enough?"""
    title = "lines" if role == "training" else f"lines of the {role} text"
    counts = tuple(map(count_lines, corpus.files)) if corpus.files else None
    if corpus.files and counts and counts[0] != counts[1]:
        source, target = corpus.files
        found = find_shift(read_lines(source), read_lines(target))
        seen = f"{source} has {counts[0]:,} lines but {target} has {counts[1]:,}; {found.sentence()}"
        where = "from there on" if found.line else "at their ends" if found.judged else "from the start"
        remedy = f"compare the files {where}; delete what has no translation, or add the line that is missing"
        corpus, total = Corpus(corpus.name, lambda: _side_by_side(source, target)), min(counts)
        findings = [
            Finding(
                "lines", "error", title, seen, remedy, _part_examples(found), _shift_numbers(found) | {"lines": counts}
            )
        ]
        return findings, Survey.of(corpus, total, config, reporter, f"looking at the {role} text")
    total = corpus.count()
    survey = Survey.of(corpus, total, config, reporter, f"looking at the {role} text")
    findings = [Finding("lines", "ok", title, f"{total:,} on both sides", numbers={"lines": (total, total)})]
    findings.append(_shift(role, shift_of(survey.source.features, survey.target.features), survey.pairs))
    return findings, survey


def _side_by_side(source: Path, target: Path) -> Iterator[Pair]:
    for line, (one, other) in enumerate(zip(read_lines(source), read_lines(target), strict=False), 1):
        yield Pair(one, other, line)


def _shift(role: str, found: Shift, pairs: int) -> Finding:
    title = "side by side" if role == "training" else f"side by side, {role} text"
    numbers = _shift_numbers(found)
    if not found.judged:
        if pairs >= 1000:
            seen = "lengths, numbers and punctuation of the two sides have nothing in common"
            return Finding(
                "shift",
                "warning",
                title,
                seen,
                "make sure that the two files are translations of each other, in the same order",
                (),
                numbers,
            )
        return Finding(
            "shift",
            "note",
            title,
            "too few lines, or too loosely alike, to tell whether the sides run beside each other",
            numbers=numbers,
        )
    if found.parts:
        seen = f"{found.lines:,} pairs look shifted; the first is line {found.line:,}"
        remedy = "look at these lines; move one side back beside the other, or delete them from both files"
        severity: Severity = "error" if found.lines > 0.05 * pairs else "warning"
        return Finding("shift", severity, title, seen, remedy, _part_examples(found), numbers)
    return Finding("shift", "ok", title, "no pair looks shifted (by lengths, numbers and punctuation)", numbers=numbers)


def _part_examples(found: Shift) -> tuple[str, ...]:
    more = (f"and {len(found.parts) - 5} more such parts",) if len(found.parts) > 5 else ()
    return tuple(part.sentence() for part in found.parts[:5]) + more


def _shift_numbers(found: Shift) -> dict[str, Any]:
    parts = [asdict(part) for part in found.parts]
    return {"first": found.line, "shifted": found.lines, "parts": parts, "evidence": round(found.evidence, 3)}


# -------------------------------------------------------------------------------------------------------------- content


def _content(survey: Survey, config: CleaningConfig) -> list[Finding]:
    cleaning = survey.cleaning
    return [
        _amount(cleaning),
        _dropped(cleaning, EMPTY, "empty sides", 0.01),
        _dropped(cleaning, DUPLICATE, "duplicates", 0.2, config.duplicates == "keep"),
        _dropped(cleaning, IDENTICAL, "sides that are the same", 0.02, config.identical == "keep"),
        _dropped(
            cleaning, TOO_LONG, "too long", 0.02, remedy=f"split them, or raise cleaning.max_words ({config.max_words})"
        ),
        _dropped(cleaning, RATIO, "sides of very unlike length", 0.02, config.max_ratio == 0),
        _dropped(cleaning, CONTROL, "control characters", 0.01, remedy="replace them in the files to keep these pairs"),
        _several_targets(survey),
        _lengths(survey),
        *(_scripts(role, side, survey) for role, side in (("source", survey.source), ("target", survey.target))),
        _composition(survey),
        *_odd_characters(survey),
    ]


def _amount(cleaning: CleaningReport) -> Finding:
    kept, total = cleaning.kept, cleaning.total
    seen = f"{kept:,} of {total:,} pairs are left after cleaning"
    numbers = cleaning.as_dict()
    if kept == 0:
        return Finding(
            "amount", "error", "how much", seen, "there is nothing to train on: see the reasons below", (), numbers
        )
    if kept < 0.7 * total:
        return Finding(
            "amount",
            "warning",
            "how much",
            seen,
            "see the reasons below; the settings under [cleaning] decide",
            (),
            numbers,
        )
    if kept < 1_000:
        return Finding(
            "amount",
            "warning",
            "how much",
            seen,
            "too little to learn a language from: gather more, some 5,000 pairs at least",
            (),
            numbers,
        )
    if kept < 10_000:
        return Finding(
            "amount",
            "note",
            "how much",
            seen,
            "enough for a narrow domain; every further thousand pairs will show",
            (),
            numbers,
        )
    return Finding("amount", "ok", "how much", seen, numbers=numbers)


def _dropped(
    cleaning: CleaningReport, reason: str, title: str, much: float, kept: bool = False, remedy: str = ""
) -> Finding:
    number, total = cleaning.dropped.get(reason, 0), max(1, cleaning.total)
    check = reason.replace(" ", "-")
    if kept:
        return Finding(check, "ok", title, "not looked for: the settings keep them")
    if not number:
        return Finding(check, "ok", title, "none", numbers={"pairs": 0})
    examples = tuple(f"line {pair.line:,}: {pair.source} | {pair.target}" for pair in cleaning.examples[reason])
    severity: Severity = "warning" if number > much * total else "note"
    fix = f"training leaves them out; {remedy}" if remedy else "training leaves them out"
    return Finding(
        check,
        severity,
        title,
        f"{number:,} {'pair' if number == 1 else 'pairs'} ({share(number, total)})",
        fix,
        examples,
        {"pairs": number},
    )


def _several_targets(survey: Survey) -> Finding:
    """Sources with several translations teach a model to hesitate when they are many."""
    sources = survey.source.keys
    title = "sources with several translations"
    if not len(sources):
        return Finding("several-targets", "ok", title, "none", numbers={"sources": 0, "pairs": 0})
    _, places = np.unique(join_keys(sources, survey.target.keys), return_index=True)  # each different pair once
    distinct, counts = np.unique(sources[places], return_counts=True)
    many = distinct[counts > 1]
    pairs = int(counts[counts > 1].sum())
    numbers = {"sources": len(many), "pairs": pairs}
    if not len(many):
        return Finding("several-targets", "ok", title, "none", numbers=numbers)
    examples = []
    for key in many[np.argsort(-counts[counts > 1], kind="stable")][:3]:
        lines = survey.lines[sources == key]
        examples.append(
            "lines "
            + ", ".join(f"{line:,}" for line in lines[:4])
            + (" ..." if len(lines) > 4 else "")
            + " have the same source"
        )
    seen = f"{len(many):,} sources stand in {pairs:,} different pairs ({share(pairs, survey.pairs)})"
    if pairs > 0.3 * survey.pairs:
        remedy = "fine if they are free translations; if they are several versions of one text, keep the best version"
        return Finding("several-targets", "note", title, seen, remedy, tuple(examples), numbers)
    return Finding("several-targets", "ok", title, seen, "", tuple(examples), numbers)


def _lengths(survey: Survey) -> Finding:
    texts: list[str] = []
    numbers: dict[str, dict[str, float]] = {}
    for role, side in (("source", survey.source), ("target", survey.target)):
        if not len(side.lengths):
            continue
        middle, most, longest = (int(value) for value in np.percentile(side.lengths, [50, 95, 100]))
        numbers[role] = {
            "median": middle,
            "95%": most,
            "longest": longest,
            "longest_line": int(np.argmax(side.lengths)) + 1,
        }
        texts.append(
            f"{role} median {middle}, 95 % up to {most}, longest {longest:,} (line {numbers[role]['longest_line']:,})"
        )
    both = (survey.source.lengths > 0) & (survey.target.lengths > 0)
    if both.any():
        ratio = float(np.median(survey.target.lengths[both] / survey.source.lengths[both]))
        texts.append(f"{ratio:.2f} target words for a source word")
        numbers["ratio"] = {"median": round(ratio, 3)}
    return Finding("lengths", "ok", "length in words", "; ".join(texts) or "no text", numbers=numbers)


def _scripts(role: str, side: Side, survey: Survey) -> Finding:
    total = side.scripts.total()
    title = f"script of the {role}"
    if not total:
        return Finding("script", "ok", title, "no letters", numbers={"side": role})
    parts = [f"{script} {share(number, total)}" for script, number in side.scripts.most_common(4)]
    numbers = {"side": role, **{script: number / total for script, number in side.scripts.most_common(4)}}
    seen = ", ".join(parts) + " of the letters"
    expected = survey.profile.source_script if role == "source" else survey.profile.target_script
    wrong = survey.cleaning.dropped.get(SCRIPT, 0)
    if expected is None:
        remedy = "if this side should have one script, find the lines that are not in it; as it is, no line is judged by its script"
        return Finding("script", "warning", title, f"mixed: {seen}", remedy, (), numbers)
    if wrong and role == "target":  # the count is of pairs, so it is told once
        examples = tuple(
            f"line {pair.line:,}: {pair.source} | {pair.target}" for pair in survey.cleaning.examples[SCRIPT]
        )
        severity: Severity = "warning" if wrong > 0.01 * survey.pairs else "note"
        seen += f"; {wrong:,} pairs ({share(wrong, survey.pairs)}) have a side mostly in another script"
        return Finding(
            "script",
            severity,
            title,
            seen,
            "training leaves them out (cleaning.wrong_script)",
            examples,
            numbers | {"pairs": wrong},
        )
    return Finding("script", "ok", title, seen, numbers=numbers)


def _composition(survey: Survey) -> Finding:
    sides = (("source", survey.source), ("target", survey.target))
    numbers = {role: {"not_nfc": side.decomposed.number, "composed": side.composed} for role, side in sides}
    texts = [f"{side.decomposed.number:,} {role} lines" for role, side in sides if side.decomposed.number]
    if not texts:
        return Finding("unicode-form", "ok", "Unicode form", "all text is in NFC", numbers=numbers)
    mixed = any(side.decomposed.number and side.composed for _, side in sides)
    seen = (
        " and ".join(texts)
        + " are not in NFC"
        + (", the others are: the same letter is written in two ways" if mixed else "")
    )
    remedy = "training brings all text to NFC (tokenizer.normalisation); do the same to text you compare with"
    examples = tuple(example for role, side in sides for example in _examples(role, side.decomposed)[:1])
    return Finding("unicode-form", "note", "Unicode form", seen, remedy, examples, numbers)


def _odd_characters(survey: Survey) -> list[Finding]:
    findings = []
    remedies = {
        "replacement characters": "letters were lost in an earlier conversion: go back to the original text",
        "wrongly decoded letters": "UTF-8 was once read as another encoding: convert again from the original, or repair with ftfy",
    }
    for kind in ODD_CHARACTERS:
        tallies = (("source", survey.source.odd[kind]), ("target", survey.target.odd[kind]))
        number = sum(tally.number for _, tally in tallies)
        if number:
            examples = tuple(example for role, tally in tallies for example in _examples(role, tally))[:3]
            numbers = {f"{role}_lines": tally.number for role, tally in tallies}
            serious = kind in remedies and number > 0.001 * survey.pairs
            remedy = remedies.get(
                kind, "harmless if the language needs them; otherwise remove them, or the same word becomes two"
            )
            seen = f"in {number:,} lines"
            findings.append(
                Finding(kind.replace(" ", "-"), "warning" if serious else "note", kind, seen, remedy, examples, numbers)
            )
    return findings or [Finding("odd-characters", "ok", "odd characters", "none")]


def _examples(role: str, tally: Tally) -> list[str]:
    return [f"{role} line {line:,}: {text}" for line, text in tally.examples]


# ------------------------------------------------------------------------------------------------------- between corpora


def _leakage(surveys: dict[str, Survey]) -> list[Finding]:
    """Sources that stand in two of the texts, compared without case, spacing and Unicode form."""
    findings = []
    roles = list(surveys)
    for number, held in enumerate(roles):
        for other in roles[:number]:
            findings.append(_shared(other, surveys[other], held, surveys[held]))
    return findings


def _shared(other: str, one: Survey, held: str, two: Survey) -> Finding:
    places = np.flatnonzero(contains(np.unique(one.source.keys), two.source.keys))
    title = f"{held} sources in the {other} text"
    numbers = {"in": other, "of": held, "pairs": len(places)}
    if not len(places):
        return Finding("leakage", "ok", title, "none", numbers=numbers)
    examples = []
    for place in places[:3]:
        line = one.lines[np.flatnonzero(one.source.keys == two.source.keys[place])[0]]
        examples.append(f"{held} line {two.lines[place]:,} is {other} line {line:,}")
    seen = f"{len(places):,} of {two.pairs:,} ({share(len(places), two.pairs)})"
    severity: Severity = "error" if len(places) > 0.2 * two.pairs else "warning"
    if (other, held) == ("training", "validation"):
        remedy = "training leaves them out of the training text, so that validation scores do not flatter"
    else:
        remedy = f"scores on them flatter: take these pairs out of the {other} text"
    return Finding("leakage", severity, title, seen, remedy, tuple(examples), numbers)


def _coverage(train: Survey, held_out: dict[str, Survey]) -> list[Finding]:
    """Are the words to be translated words that were seen? Against the last tenth of the training text where nothing else is given."""
    findings = []
    before = f" (a sample: every {train.every:,}th pair)" if train.every > 1 else ""
    for role, side in (("source", train.source), ("target", train.target)):
        known = side.words + side.tail_words if held_out else side.words
        texts = {name: getattr(survey, role) for name, survey in held_out.items()}
        tests = {f"the {name} text": other.words + other.tail_words for name, other in texts.items()} or {
            "the last tenth": side.tail_words
        }
        for name, words in tests.items():
            if known.total() and words.total():
                findings.append(_covered(role, name, known, words, before, side.by_character))
    return findings


def _covered(
    role: str, name: str, known: Counter[str], words: Counter[str], before: str, by_character: bool
) -> Finding:
    units = "characters" if by_character else "words"
    seen = sum(number for word, number in words.items() if word in known) / words.total()
    once = sum(1 for number in known.values() if number == 1)
    new = [word for word, _ in words.most_common() if word not in known]
    numbers = {
        "side": role,
        "of": name,
        "covered": round(seen, 4),
        "different": len(known),
        "once": once,
        "new": len(new),
    }
    text = (
        f"{100 * seen:.1f} % of the {units} in {name} stand in the training text{before}; "
        f"{len(known):,} different {units} there, {share(once, len(known))} of them only once"
    )
    severity: Severity = "ok" if seen >= 0.9 else "note" if seen >= 0.75 else "warning" if seen >= 0.4 else "error"
    remedy = ""
    if severity == "note":
        remedy = "subwords (the default tokenizer) spell new words; more text of the same kind helps most"
    elif severity != "ok":
        remedy = "another language, domain or spelling? compare the two texts, and train on text like the one to be translated"
    examples = (f"new there: {', '.join(new[:8])}",) if severity != "ok" and new else ()
    return Finding("coverage", severity, f"{units} of the {role}", text, remedy, examples, numbers)
