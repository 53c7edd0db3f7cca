"""LibreTranslate's interface: shapes of requests and answers as its clients rely on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kente import api
from kente.text.reading import read

TEXT = "The cat sees the dog."
ASKED = {"q": TEXT, "source": "en", "target": "fr"}


@pytest.fixture(scope="module")
def translated(run: Path) -> Any:
    """What a text becomes when it is read, translated and put together without a server."""
    translator = api.load(run, engine="ctranslate2", threads=1)

    def translate(text: str, **how: Any) -> str:
        reading = read(text, **how)
        first = [t.text for t in translator.translate(reading.sentences, split=False)]
        second = [t.text for t in translator.translate(reading.again(first), split=False)]
        return reading.put_together(first, second).text

    return translate


# ---------------------------------------------------------------- /translate


def test_a_text_is_translated_as_the_run_translates_it(server: Any, translated: Any) -> None:
    answer = server.post("/translate", ASKED)
    assert answer.status == 200 and answer.json == {"translatedText": translated(TEXT)}
    assert answer.headers["content-type"] == "application/json"


def test_json_a_form_and_the_address_say_the_same(server: Any) -> None:
    wanted = server.post("/translate", ASKED).json
    assert server.form("/translate", **ASKED).json == wanted
    assert server.ask("POST", f"/translate?{urlencode(ASKED)}").json == wanted


def test_a_list_is_answered_with_a_list_and_may_hold_empty_texts(server: Any) -> None:
    single = server.post("/translate", ASKED).json["translatedText"]
    answer = server.post("/translate", {**ASKED, "q": [TEXT, "", "  \n", TEXT]}).json
    assert answer == {"translatedText": [single, "", "  \n", single]}
    assert server.post("/translate", {**ASKED, "q": []}).json == {"translatedText": []}


def test_a_text_of_several_sentences_and_lines_keeps_its_layout(server: Any, translated: Any) -> None:
    text = "The cat sees the dog. The dog sees the cat.\n\n  The man sees the tree.\n"
    answer = server.post("/translate", {**ASKED, "q": text}).json["translatedText"]
    assert answer == translated(text) and answer.count("\n") == 3 and answer.endswith("\n")


@pytest.mark.parametrize("text", ["", "12 + 3 = 15", "!!!", "https://example.org/a?b=c", "☃"])
def test_what_holds_no_language_passes_through(server: Any, text: str) -> None:
    assert server.post("/translate", {**ASKED, "q": text}).json == {"translatedText": text}


def test_tags_survive(server: Any) -> None:
    page = '<p class="green">The cat <b>sees</b> the dog.</p>'
    answer = server.post("/translate", {**ASKED, "q": page, "format": "html"}).json["translatedText"]
    assert answer.startswith('<p class="green">') and answer.endswith("</p>")
    assert answer.count("<b>") == answer.count("</b>") == 1


def test_alternatives_come_if_asked_for_and_differ_from_the_best(server: Any) -> None:
    answer = server.post("/translate", {**ASKED, "alternatives": 3}).json
    assert set(answer) == {"translatedText", "alternatives"}
    assert 1 <= len(answer["alternatives"]) <= 3
    assert len({answer["translatedText"], *answer["alternatives"]}) == 1 + len(answer["alternatives"])
    listed = server.post("/translate", {**ASKED, "q": [TEXT], "alternatives": 3}).json
    assert listed["alternatives"] == [answer["alternatives"]]
    assert server.form("/translate", **ASKED, alternatives="3").json == answer


def test_the_source_is_found_out_if_asked_for(server: Any) -> None:
    answer = server.post("/translate", {**ASKED, "source": "auto"}).json
    assert answer["detectedLanguage"]["language"] == "en" and 50 < answer["detectedLanguage"]["confidence"] <= 100
    assert answer["translatedText"] == server.post("/translate", ASKED).json["translatedText"]
    listed = server.post("/translate", {**ASKED, "q": [TEXT, TEXT], "source": "auto"}).json
    assert listed["detectedLanguage"] == [answer["detectedLanguage"]] * 2


def test_a_text_in_the_right_language_already_stays_as_it_is(server: Any) -> None:
    french = "Le chat regarde la maison."
    for source in ("auto", "fr"):
        assert (
            server.post("/translate", {"q": french, "source": source, "target": "fr"}).json["translatedText"] == french
        )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"source": "en", "target": "fr"}, "q is missing"),
        ({"q": "a", "target": "fr"}, "source is missing"),
        ({"q": "a", "source": "en"}, "target is missing"),
        ({**ASKED, "q": 5}, "q must be text"),
        ({**ASKED, "q": [["a"]]}, "the list holds a list"),
        ({**ASKED, "q": None}, "it was null"),
        ({**ASKED, "source": "de"}, "de is not translated here; sources are auto, en"),
        ({**ASKED, "target": "de"}, "de is not translated to here; targets are fr"),
        ({**ASKED, "source": "fr", "target": "en"}, "fr is not translated to en here"),
        ({**ASKED, "format": "pdf"}, "format must be one of text, html"),
        ({**ASKED, "alternatives": -1}, "alternatives must be a whole number from 0 to 10"),
        ({**ASKED, "alternatives": "3"}, "alternatives must be a whole number"),
        ({**ASKED, "alternatives": True}, "alternatives must be a whole number"),
        ({**ASKED, "q": "\ud800"}, "half of a character"),
        ([], "must be a JSON object; it was a list"),
    ],
)
def test_what_is_wrong_is_said(server: Any, body: Any, words: str) -> None:
    answer = server.post("/translate", body)
    assert answer.status == 400 and words in answer.json["error"] and list(answer.json) == ["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"q": NaN}', b"[" * 100_000, b'{"a":' * 50_000])
def test_a_body_that_is_not_json_is_refused(server: Any, body: bytes) -> None:
    answer = server.ask("POST", "/translate", body, {"Content-Type": "application/json"})
    assert answer.status == 400 and "JSON" in answer.json["error"]


@pytest.mark.parametrize("form", [b"q=%ff&source=en&target=fr", b"q=\xff", b"&".join(b"a=1" for _ in range(500))])
def test_a_form_that_cannot_be_read_is_refused(server: Any, form: bytes) -> None:
    answer = server.ask("POST", "/translate", form, {"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 400 and "form" in answer.json["error"]


def test_other_kinds_of_bodies_are_refused(server: Any) -> None:
    answer = server.ask("POST", "/translate", b"<q/>", {"Content-Type": "text/xml"})
    assert answer.status == 415 and "text/xml is not read here" in answer.json["error"]


# ---------------------------------------------------------------- the other routes


@pytest.mark.parametrize(("text", "code"), [("The woman sees the bird.", "en"), ("La femme regarde le poisson.", "fr")])
def test_languages_are_told_apart(server: Any, text: str, code: str) -> None:
    for answer in (server.post("/detect", {"q": text}), server.form("/detect", q=text)):
        best, *others = answer.json
        assert best["language"] == code and set(best) == {"language", "confidence"}
        assert all(0 <= other["confidence"] <= best["confidence"] <= 100 for other in others)


def test_languages_are_listed_even_to_clients_that_send_a_body(server: Any) -> None:
    listed = [{"code": "en", "name": "English", "targets": ["fr"]}, {"code": "fr", "name": "French", "targets": []}]
    assert server.get("/languages").json == listed
    assert server.ask("GET", "/languages", b"api_key=x").json == listed


def test_a_page_learns_what_it_should_know(server: Any) -> None:
    settings = server.get("/frontend/settings").json
    assert settings["language"] == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "fr", "name": "French"},
    }
    assert settings["suggestions"] is True and settings["keyRequired"] is False and settings["charLimit"] == 20_000
    assert {".txt", ".html", ".po", ".srt", ".tsv"} <= set(settings["supportedFilesFormat"])


def test_it_is_alive_and_ready(server: Any) -> None:
    assert server.get("/health").json == {"status": "ok"}
    assert server.get("/ready").json == {"status": "ready", "pairs": ["en-fr"]}


def test_a_file_is_translated_and_can_be_fetched(server: Any, translated: Any) -> None:
    text = "The cat sees the dog.\r\n\r\nThe man sees the tree.\r\n"
    answer = server.upload("/translate_file", "a letter.txt", text.encode(), source="en", target="fr")
    address = answer.json["translatedFileUrl"]
    assert address.startswith(f"{server.address}/download_file/") and address.endswith(".txt")
    fetched = server.get(address.removeprefix(server.address))
    assert fetched.data.decode().count("\r\n") == 3
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20letter.fr.txt"
    again = server.upload("/translate_file", "a letter.txt", text.encode(), source="auto", target="fr").json
    assert server.get(again["translatedFileUrl"].removeprefix(server.address)).data == fetched.data


@pytest.mark.parametrize(
    ("name", "data", "fields", "words"),
    [
        ("a.pdf", b"%PDF", {"source": "en", "target": "fr"}, "cannot be translated; these can: .txt"),
        ("a.srt", b"no subtitles", {"source": "en", "target": "fr"}, "a.srt"),
        ("a.txt", b"x", {"source": "en"}, "target is missing"),
        ("a.txt", b"x", {"source": "de", "target": "fr"}, "de is not translated here"),
    ],
)
def test_files_that_cannot_be_translated_are_refused(
    server: Any, name: str, data: bytes, fields: dict[str, str], words: str
) -> None:
    answer = server.upload("/translate_file", name, data, **fields)
    assert answer.status == 400 and words in answer.json["error"]


def test_there_is_nothing_to_fetch_under_another_name(server: Any) -> None:
    for name in ("x.txt", "..%2f..%2fconfig.toml", "%00"):
        assert server.get(f"/download_file/{name}").status == 404


def test_a_suggestion_is_kept_beside_the_run(server: Any, run: Path) -> None:
    taught = {"q": "The cat\nsees.", "s": "Le chat regarde.", "source": "en", "target": "fr"}
    assert server.post("/suggest", taught).json == {"success": True}
    assert server.form("/suggest", **taught).json == {"success": True}
    lines = (run / "corrections.tsv").read_text().splitlines()
    assert [line.split("\t")[:2] for line in lines[-2:]] == [["The cat sees.", "Le chat regarde."]] * 2


def test_suggestions_that_teach_nothing_or_come_from_other_sites_are_refused(server: Any) -> None:
    taught = {"q": "The cat.", "s": "Le chat.", "source": "en", "target": "fr"}
    assert server.post("/suggest", {**taught, "s": " "}).status == 400
    assert server.post("/suggest", {**taught, "target": "de"}).status == 400
    assert server.post("/suggest", taught, Sec_Fetch_Site="cross-site").status == 403


def test_the_routes_are_described_in_swagger_too(server: Any) -> None:
    spec = server.get("/spec").json
    assert spec["swagger"] == "2.0" and "/translate" in spec["paths"]
    text = json.dumps(spec)
    assert "#/components" not in text and all(
        reference.split('"')[0] in spec["definitions"] for reference in text.split("#/definitions/")[1:]
    )
