"""What the translation page is for, against a stand-in that does as it is told and against `kente serve` itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SENTENCE = "the black cat sleeps in the garden ."


def test_a_sentence_typed_is_translated_without_further_ado(either: Any) -> None:
    either.arrive()
    shown = either.translate(SENTENCE, keys=True)
    answer = either.site.answer(SENTENCE, "fr")
    assert shown == answer["text"] and shown.strip()
    words = [word["text"] for sentence in answer["sentences"] for word in sentence["words"]]
    assert either.evaluate(f"{either.words}.map(span => span.textContent)") == words
    others = either.texts("#alternatives-list .wording")
    assert others == ([shown, *(other["text"] for other in answer["alternatives"])] if answer["alternatives"] else [])


def test_a_click_on_a_word_shades_the_words_it_looked_at(either: Any) -> None:
    either.arrive()
    either.translate(SENTENCE)
    (sentence,) = either.site.answer(SENTENCE, "fr")["sentences"]
    word = sentence["words"][0]
    either.click(f"{either.words}[0]")
    assert either.evaluate(either.chosen) == 0
    shares = either.evaluate(
        f"{either.source_words}.map(span => span.classList.contains('looked') ? Number(span.style.getPropertyValue('--share')) : 0)"
    )
    wanted = [0.0] * len(sentence["source_words"])
    for place, weight in word["looks_at"]:
        wanted[place] = weight
    assert shares == pytest.approx(wanted, abs=1e-6) and max(shares) > 0
    most = sentence["source_words"][max(range(len(wanted)), key=wanted.__getitem__)]["text"]
    told = either.says("looks")
    assert told.startswith(word["text"]) and f"looked at {most} {100 * max(wanted):.0f} %" in told


def test_the_explorer_is_one_click_away_and_back_brings_the_text_back(either: Any) -> None:
    either.arrive()
    shown = either.translate(SENTENCE)
    either.push("explore")
    either.until("location.pathname === '/look' && document.readyState === 'complete'")
    assert SENTENCE in either.evaluate("document.body.textContent")
    slider = "document.querySelector('input[type=range]')"
    either.until(slider)
    low, high = either.evaluate(f"[{slider}.min, {slider}.max]")
    assert low != high
    either.evaluate(f"{slider}.focus()")
    for key, value in (("Home", low), ("End", high)):
        either.press(key)
        either.until(f"{slider}.value === {json.dumps(value)}")
    either.evaluate("history.back()")
    either.until(f"document.getElementById('target')?.value === {json.dumps(shown)}")
    assert either.evaluate(f"{either.source}.value") == SENTENCE


def test_another_language_translates_anew(either: Any) -> None:
    either.arrive()
    either.translate(SENTENCE)
    other = next(code for code in either.codes("to") if code != "fr")
    either.choose("to", other)
    wanted = either.site.answer(SENTENCE, other)["text"]
    either.until(f"{either.target}.value === {json.dumps(wanted)} && {either.target}.lang === {json.dumps(other)}")
    assert [body["target"] for body in either.asked("/v1/translate")] == ["fr", other]


def test_a_file_is_translated_and_can_be_saved(either: Any, tmp_path: Path) -> None:
    given = tmp_path / "three lines.txt"
    given.write_text(f"{SENTENCE}\n\n{SENTENCE}\n", encoding="utf-8")
    (tmp_path / "saved").mkdir()
    either.downloads_to(tmp_path / "saved")
    either.arrive()
    either.choose_files(either.part("file-field"), given)
    either.until("document.querySelector('#file-list a')")
    either.click("document.querySelector('#file-list a')")
    either.browser.wait_for("Browser.downloadProgress", state="completed")
    (saved,) = (tmp_path / "saved").iterdir()
    wanted = either.site.answer(SENTENCE, "fr", plain=True)["text"]
    assert saved.read_text(encoding="utf-8") == f"{wanted}\n\n{wanted}\n" and saved.suffix == ".txt"


def test_a_correction_is_taught(either: Any) -> None:
    either.arrive()
    shown = either.translate(SENTENCE)
    either.push("correct")
    assert either.evaluate(f"{either.part('teach')}.disabled"), "nothing has been changed yet"
    either.evaluate(f"{either.target}.setSelectionRange({either.target}.value.length, {either.target}.value.length)")
    either.type(" indeed")
    either.push("teach")
    either.until_says("taught", "Kept")
    assert either.site.taught()[-1] == (SENTENCE, f"{shown} indeed".strip())
    assert either.evaluate(f"{either.target}.readOnly")
