"""Our own routes: places, words, confidence, attention, streams, progress; and what a browser or an operator gets."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kente import api
from kente.serve.words import looked

TEXT = "The cat sees the dog.  The man, aged 5, sees a tree.\n\nThe bird sees the fish."
ASKED = {"q": TEXT, "source": "en", "target": "fr"}


def translation(answer: Any) -> Any:
    assert answer.status == 200, answer.data
    return answer.json["translations"][0]


def check_places(source: str, text: str, sentences: list[Any]) -> None:
    """Every place names what it says it does, in order, in code points."""
    for sentence in sentences:
        for side, whole, begin, end in (
            ("source_words", source, sentence["source_start"], sentence["source_end"]),
            ("words", text, sentence["start"], sentence["end"]),
        ):
            last = begin
            for word in sentence[side]:
                assert whole[word["start"] : word["end"]] == word["text"] != ""
                assert last <= word["start"] < word["end"] <= end
                last = word["end"]


def test_an_answer_says_where_sentences_and_words_stand(server: Any) -> None:
    answer = translation(server.post("/v1/translate", ASKED))
    sentences = answer["sentences"]
    assert [TEXT[s["source_start"] : s["source_end"]] for s in sentences] == [
        "The cat sees the dog.",
        "The man, aged 5, sees a tree.",
        "The bird sees the fish.",
    ]
    check_places(TEXT, answer["text"], sentences)
    assert answer["source"] == "en" and answer["detected"] is None and answer["alternatives"] == []
    assert all(set(word) == {"text", "start", "end"} for s in sentences for word in s["words"])


def test_places_count_code_points(server: Any) -> None:
    text = "🐈🐈 The cat sees the dog. 🐈 The man sees the tree."
    answer = translation(server.post("/v1/translate", {**ASKED, "q": text, "words": True}))
    check_places(text, answer["text"], answer["sentences"])


def test_words_say_how_sure_the_model_was_and_where_it_looked(server: Any, run: Path) -> None:
    answer = translation(server.post("/v1/translate", {**ASKED, "q": "The cat sees the dog.", "attention": True}))
    (sentence,) = answer["sentences"]
    words, sources = sentence["words"], sentence["source_words"]
    assert len(sentence["attention"]) == len(words) and {len(row) for row in sentence["attention"]} == {len(sources)}
    for word, row in zip(words, sentence["attention"], strict=True):
        assert 0 < word["confidence"] <= 1
        assert 0 < sum(row) <= 1 + 1e-3
        strongest = max(range(len(row)), key=row.__getitem__)
        assert word["looks_at"][0] == [strongest, pytest.approx(row[strongest], abs=1e-3)]
        weights = [weight for _, weight in word["looks_at"]]
        assert weights == sorted(weights, reverse=True)


def test_confidence_is_the_probability_that_torch_gives_the_words(server: Any, run: Path) -> None:
    text = "The cat sees the dog."
    answer = translation(server.post("/v1/translate", {**ASKED, "q": text, "words": True}))
    found = api.load(run, engine="torch", threads=1).translate(text, split=False, details=True)[0]
    assert [word["confidence"] for word in answer["sentences"][0]["words"]] == pytest.approx(
        looked(found.details).confidence, rel=1e-3
    )


def test_alternatives_have_scores_and_come_best_first(server: Any) -> None:
    answer = translation(server.post("/v1/translate", {**ASKED, "alternatives": 4}))
    scores = [other["score"] for other in answer["alternatives"]]
    assert scores and scores == sorted(scores, reverse=True)
    assert answer["text"] not in [other["text"] for other in answer["alternatives"]]


def test_several_texts_are_answered_in_order_with_engine_and_time(server: Any) -> None:
    body = server.post("/v1/translate", {**ASKED, "q": ["The cat.", "", "The dog."]}).json
    assert len(body["translations"]) == 3 and body["translations"][1]["text"] == ""
    assert body["engine"].startswith("CTranslate2 ") and body["milliseconds"] > 0
    single = translation(server.post("/v1/translate", {**ASKED, "q": "The dog."}))
    assert body["translations"][2] == single


def test_a_long_sentence_is_warned_about_in_its_place(server: Any) -> None:
    text = "The cat sees the dog. The man" + " sees the dog and the cat and" * 30 + " the end."
    answer = translation(server.post("/v1/translate", {**ASKED, "q": text, "words": True}))
    warning = next(w for w in answer["warnings"] if w["kind"] == "split")
    second = answer["sentences"][1]
    assert (warning["start"], warning["end"]) == (second["start"], second["end"])
    assert warning["message"] == "too long for the model: translated in parts"


def test_in_a_page_words_are_those_that_can_be_read(server: Any) -> None:
    page = "<p>The <b>cat</b> sees &amp; hears the dog.</p>"
    answer = translation(server.post("/v1/translate", {**ASKED, "q": page, "format": "html", "words": True}))
    words = [word["text"] for word in answer["sentences"][0]["source_words"]]
    assert words == ["The", "cat", "sees", "&amp;", "hears", "the", "dog", "."]


@pytest.mark.parametrize(("field", "value"), [("words", 1), ("attention", "true"), ("words", None)])
def test_truth_is_true_or_false(server: Any, field: str, value: Any) -> None:
    answer = server.post("/v1/translate", {**ASKED, field: value})
    assert answer.status == 400 and f"{field} must be true or false" in answer.json["error"]


# ---------------------------------------------------------------- streams


def test_a_stream_gives_sentence_after_sentence_and_then_the_whole(server: Any) -> None:
    answer = server.post("/v1/stream", {**ASKED, "words": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *parts, (last, whole) = answer.events
    assert last == "done" and [name for name, _ in parts] == ["sentence"] * 3
    assert [(data["number"], data["of"]) for _, data in parts] == [(1, 3), (2, 3), (3, 3)]
    assert whole["translations"] == server.post("/v1/translate", {**ASKED, "words": True}).json["translations"]
    for (_, part), final in zip(parts, whole["translations"][0]["sentences"], strict=True):
        assert (part["source_start"], part["source_end"]) == (final["source_start"], final["source_end"])
        assert [word["confidence"] for word in part["words"]] == [word["confidence"] for word in final["words"]]


def test_a_stream_of_nothing_is_the_whole_alone(server: Any) -> None:
    ((name, data),) = server.post("/v1/stream", {**ASKED, "q": "!"}).events
    assert name == "done" and data["translations"][0]["text"] == "!"


def test_a_stream_that_cannot_begin_is_an_error_like_any_other(server: Any) -> None:
    assert server.post("/v1/stream", {**ASKED, "q": ["a"]}).status == 400
    assert server.post("/v1/stream", {**ASKED, "target": "xx"}).status == 400
    assert server.post("/v1/stream", {**ASKED, "q": "a" * 20_001}).status == 413


def test_a_file_tells_how_far_it_is_and_where_it_can_be_fetched(server: Any) -> None:
    lines = "".join(f"The cat sees {number} dogs.\n" for number in range(150))
    answer = server.upload("/v1/file", "many.txt", lines.encode(), source="en", target="fr")
    *steps, (last, done) = answer.events
    assert last == "done" and done["name"] == "many.fr.txt"
    progress = [(data["done"], data["of"]) for name, data in steps if name == "progress"]
    assert progress[0] == (0, 150) and progress[-1] == (150, 150) and progress == sorted(progress)
    assert server.get("/" + done["url"]).data.count(b"\n") == 150


# ---------------------------------------------------------------- for browsers


POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


def test_pages_run_nothing_from_elsewhere(server: Any) -> None:
    docs = server.get("/docs")
    assert docs.headers["content-security-policy"] == POLICY and docs.headers["x-content-type-options"] == "nosniff"
    page = docs.data.decode()
    assert "<script" not in page and "style=" not in page and "http://" not in page.replace("http://127.0.0.1:5000", "")
    assert server.get("/health").headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_the_page_is_at_the_root(server: Any) -> None:
    page = server.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == POLICY


def test_files_of_the_page_are_named_and_remembered_by_browsers(server: Any) -> None:
    style = server.get("/assets/docs.css")
    assert style.headers["content-type"].startswith("text/css")
    assert server.get("/assets/docs.css", If_None_Match=style.headers["etag"]).status == 304
    for name in ("nothing.js", "..%2fsettings.py", "%2e%2e/settings.py"):
        assert server.get(f"/assets/{name}").status == 404


def test_other_sites_may_not_read_answers(server: Any) -> None:
    answer = server.post("/translate", ASKED, Origin="https://elsewhere.example")
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert server.ask("OPTIONS", "/translate", headers={"Origin": "https://elsewhere.example"}).status == 405


# ---------------------------------------------------------------- for operators


def test_counters_and_log_hold_no_text_no_address_and_no_key(server: Any) -> None:
    secret = "Xylophone"
    server.post("/translate", {**ASKED, "q": secret, "api_key": "Zanzibar-key"})
    server.ask("POST", f"/translate?q={secret}&source=en&target=fr")
    server.get(f"/{secret}")
    page, log = server.get("/metrics").data.decode(), server.log.read_text()
    for told in (page, log):
        assert secret not in told and "Zanzibar" not in told and "127.0.0.1" not in told.replace(server.address, "")
    assert 'kente_requests_total{route="/translate",status="200"}' in page
    assert 'kente_requests_total{route="other",status="404"}' in page
    line = [line for line in server.logged() if line.get("route") == "/translate"][-1]
    assert line["status"] == 200 and line["characters"] == len(secret) and line["milliseconds"] >= 0


# ---------------------------------------------------------------- the explorer


@pytest.mark.slow
def test_the_explorer_opens_and_runs_nothing_but_its_own_script(start: Any, run: Path) -> None:
    server = start(run, torch=True)
    asked = {"source": "en", "target": "fr", "q": "The cat sees the dog."}
    page = server.get(f"/look?{urlencode(asked)}")
    assert page.status == 200, page.data
    policy = page.headers["content-security-policy"]
    scripts = re.findall(r"<script>(.*?)</script>", page.data.decode(), re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert scripts and all(f"'sha256-{digest}'" in policy for digest in hashes)
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe-eval" not in policy
    assert server.form("/look", **asked).status == 200
    for wrong in ({"q": " "}, {"q": "a" * 1001}, {"target": "de"}):
        assert server.get(f"/look?{urlencode({**asked, **wrong})}").status == 400
    refused = f"/look?{urlencode({**asked, 'target': '<b>'})}"
    read = server.get(refused, Accept="text/html,*/*;q=0.8")
    assert read.status == 400 and read.headers["content-type"].startswith("text/html")
    assert "En is not translated to &lt;b&gt; here." in read.data.decode()
    assert json.loads(server.get(refused).data) == {"error": "en is not translated to <b> here"}
