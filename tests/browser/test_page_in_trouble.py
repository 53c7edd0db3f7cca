"""The translation page when something goes wrong: refusals, lost networks, keys, hostile and odd answers."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(("status", "words"), [(429, "slow down"), (503, "busy")])
def test_a_busy_server_is_asked_again_when_it_said(visit: Any, stand_in: Any, status: int, words: str) -> None:
    visit.in_trouble = True
    stand_in.refusals = [(status, {"Retry-After": "2"}, "later")]
    visit.arrive()
    visit.write("one two")
    visit.until_says("trouble-wait", "Trying again in 2 s")
    assert words in visit.says("trouble-said")
    visit.until_translated("TWO ONE")
    assert visit.hidden("trouble")
    assert len(stand_in.bodies("/v1/translate")) == 2


def test_waiting_can_be_cut_short(visit: Any, stand_in: Any) -> None:
    visit.in_trouble = True
    stand_in.refusals = [(503, {"Retry-After": "3000"}, "later")]
    visit.arrive()
    visit.write("one two")
    visit.until_says("trouble-wait", "3000")
    visit.push("trouble-again")
    visit.until_translated("TWO ONE")


@pytest.mark.parametrize("status", [400, 413, 503, 504])
def test_a_refusal_is_told_in_the_servers_words_and_not_repeated(visit: Any, stand_in: Any, status: int) -> None:
    visit.in_trouble = True
    stand_in.refusals = [(status, {}, "no model translates Klingon")]
    visit.arrive()
    visit.write("one two")
    visit.until_says("trouble-said", "No model translates Klingon")
    assert visit.says("trouble-wait") == ""
    assert len(stand_in.bodies("/v1/translate")) == 1


def test_without_a_network_the_page_says_so_and_goes_on_when_it_is_back(visit: Any) -> None:
    visit.in_trouble = True
    cut = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    visit.arrive()
    visit.call("Network.emulateNetworkConditions", offline=True, **cut)
    visit.write("one two")
    visit.until_says("trouble-said", "This device is offline.")
    visit.call("Network.emulateNetworkConditions", offline=False, **cut)
    visit.until_translated("TWO ONE")


def test_a_key_is_asked_for_sent_along_and_kept_out_of_addresses(visit: Any, stand_in: Any) -> None:
    visit.in_trouble = True
    stand_in.key = "open sesame"
    stand_in.settings["keyRequired"] = True
    visit.arrive()
    visit.until("!document.getElementById('key').hidden")
    for key in ("wrong", "open sesame"):
        visit.evaluate(f"{visit.part('key-field')}.value = ''; {visit.part('key-field')}.focus()")
        visit.type(key)
        visit.press("Enter")
        if key == "wrong":
            visit.write("one two")
            visit.until_says("trouble-said", "Invalid API key")
            assert not visit.hidden("key")
    visit.until_translated("TWO ONE")
    visit.push("explore")
    visit.until("location.pathname === '/look'")
    assert stand_in.bodies("/look") == [{"source": "en", "target": "fr", "q": "one two", "api_key": "open sesame"}]
    assert not any("sesame" in url for url in visit.requests())


def test_hostile_text_is_shown_and_never_run(visit: Any, stand_in: Any) -> None:
    hostile = "<img src=x onerror='window.broken = 1'></textarea><script>window.broken = 2</script>"
    stand_in.settings["examples"] = [{"source": "en", "target": "fr", "q": hostile}]
    stand_in.replace = {"warnings": [{"kind": hostile, "message": hostile, "start": 0, "end": 0}]}
    visit.arrive()
    shown = visit.translate(hostile)
    assert shown == visit.site.answer(hostile, "fr")["text"]
    visit.click(f"{visit.words}[0]")
    visit.push("copy")
    visit.until("document.querySelectorAll('#history-list li').length === 1")
    assert visit.evaluate("typeof window.broken") == "undefined" and visit.evaluate("document.images.length") == 0
    assert visit.texts("#warnings li") == [hostile]
    assert visit.texts("#examples button") == [hostile]


@pytest.mark.parametrize(
    "broken",
    [
        {"sentences": []},
        {"sentences": [{"source_start": 0, "source_end": 9, "start": 0, "end": 9}]},
        {
            "sentences": [
                {
                    "source_start": 0,
                    "source_end": 7,
                    "start": 0,
                    "end": 7,
                    "source_words": [{"text": "one", "start": 0, "end": 3}],
                    "words": [
                        {"text": "TWO", "start": 0, "end": 3},
                        {"text": "?", "start": 2, "end": 99, "confidence": 2, "looks_at": [[7, 1.0]]},
                    ],
                }
            ]
        },
    ],
)
def test_an_answer_without_words_or_with_odd_ones_is_still_shown(
    visit: Any, stand_in: Any, broken: dict[str, Any]
) -> None:
    stand_in.replace = broken
    visit.arrive()
    visit.write("one two")
    visit.until_translated("TWO ONE")
    visit.click(visit.target)
    visit.press("End")
    visit.evaluate(f"{visit.source}.focus()")
