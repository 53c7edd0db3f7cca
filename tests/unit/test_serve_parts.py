"""The parts of a server that stand by themselves: who may ask, what is counted, kept and logged, and how it is set up."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from kente.data.corpus import Corpus
from kente.errors import UsageError
from kente.serve import corrections as corrections_module
from kente.serve import downloads as downloads_module
from kente.serve.clients import Clients, Keys, Pace
from kente.serve.connection import Guard, guarded
from kente.serve.corrections import Corrections
from kente.serve.downloads import Downloads
from kente.serve.examples import examples_of
from kente.serve.languages import codes_of, name_of
from kente.serve.logs import Forwarded, Log
from kente.serve.metrics import Counter, Histogram, Metrics
from kente.serve.refusals import Refusal
from kente.serve.server import listen
from kente.serve.settings import Settings
from kente.serve.translators import Pair, Translators
from kente.serve.turns import REST, Turns, rest_while

KEY = "0123456789abcdef"


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# ---------------------------------------------------------------- keys


def test_keys_are_the_first_words_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# ours\n{KEY} for Ama\n\n  {KEY}x\n")
    keys = Keys.read(path)
    assert keys.know(KEY) and keys.know(f"{KEY}x")
    assert not any(keys.know(other) for other in ("", "for", KEY[:-1], KEY.upper(), f"{KEY} for Ama"))


def test_no_key_is_kept_as_it_is(tmp_path: Path) -> None:
    assert KEY not in repr(vars(Keys([KEY])))


@pytest.mark.parametrize(
    ("text", "complaint"), [("# none\n", "holds no API key"), ("short\n", "fewer than 16 characters")]
)
def test_files_without_good_keys_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        Keys.read(tmp_path / "keys")
    with pytest.raises(UsageError, match="cannot be read"):
        Keys.read(tmp_path / "missing")


def test_whoever_brings_no_key_or_a_wrong_one_is_not_let_in() -> None:
    clients = Clients(Keys([KEY]), Pace(0))
    with pytest.raises(Refusal) as missing:
        clients.admit(None, "1.2.3.4")
    with pytest.raises(Refusal) as wrong:
        clients.admit("0123456789abcdeX", "1.2.3.4")
    assert (missing.value.status, wrong.value.status) == (400, 403)
    assert "API key" in missing.value.message
    assert KEY not in clients.admit(KEY, "1.2.3.4")


def test_a_client_may_ask_so_often_and_then_waits_as_long_as_it_is_told() -> None:
    clock = Clock()
    pace = Pace(60, burst=3, clock=clock)
    for _ in range(3):
        pace.take("a")
    with pytest.raises(Refusal) as refused:
        pace.take("a")
    assert refused.value.status == 429 and refused.value.headers == {"Retry-After": "1"}
    pace.take("b")
    clock.now += 1
    pace.take("a")
    with pytest.raises(Refusal):
        pace.take("a")


def test_guessing_keys_is_slowed_down_by_address() -> None:
    clients = Clients(Keys([KEY]), Pace(60, burst=2, clock=Clock()))
    for status in (403, 403, 429):
        with pytest.raises(Refusal) as refused:
            clients.admit("wrong-wrong-wrong", "1.2.3.4")
        assert refused.value.status == status
    clients.admit(KEY, "1.2.3.4")


def test_clients_beyond_number_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kente.serve.clients.REMEMBERED", 10)
    pace = Pace(60, clock=Clock())
    for number in range(100):
        pace.take(str(number))
    assert len(pace._buckets) == 10


# ---------------------------------------------------------------- counters


LINE = re.compile(
    r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))"
    r'|[a-z_]+(\{[a-z_]+="([^"\\\n]|\\.)*"(,[a-z_]+="([^"\\\n]|\\.)*")*\})? -?[0-9.e+-]+'
)


def test_the_page_of_counters_is_in_the_text_format() -> None:
    metrics = Metrics()
    metrics.requests.add(route='/a"\\\n', status="200")
    metrics.seconds.see(0.3, route="/translate")
    metrics.batch(5, 0.02)
    page = metrics.page(queued_tokens=3.5, ready=1)
    assert page.endswith("\n")
    assert [line for line in page.splitlines() if not LINE.fullmatch(line)] == []
    assert 'kente_state{what="queued_tokens"} 3.5' in page


def test_a_histogram_counts_everything_up_to_each_bound() -> None:
    histogram = Histogram("h", "help", (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.see(value)
    assert list(histogram.lines())[2:] == [
        'h_bucket{le="1"} 2',
        'h_bucket{le="2"} 3',
        'h_bucket{le="+Inf"} 4',
        "h_sum 12",
        "h_count 4",
    ]


def test_counters_add_up_by_labels() -> None:
    counter = Counter("c", "help")
    counter.add(route="a", status="200")
    counter.add(2, status="200", route="a")
    assert list(counter.lines())[2:] == ['c{route="a",status="200"} 3']


# ---------------------------------------------------------------- logs


def test_an_error_is_logged_by_kind_and_place_without_its_message() -> None:
    stream = io.StringIO()
    log = Log(stream)
    try:
        raise ValueError("the user's secret text")
    except ValueError as error:
        log.failure(error, route="/translate")
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "broken", None, (ValueError, error, None))
        Forwarded(log).emit(record)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["error"] for line in lines] == ["ValueError", "ValueError"]
    assert "secret" not in stream.getvalue() and "test_serve_parts.py" in lines[0]["where"][0]


def test_refusals_are_summed_up() -> None:
    stream = io.StringIO()
    log = Log(stream)
    log._summed_up = float("inf")
    for _ in range(1000):
        log.refused("overload")
    log.sum_up()
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["overload"] == 1000


def test_a_log_that_nobody_reads_does_not_stop_the_server() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    log = Log(Gone())
    log.write("a")
    log.write("b")
    assert log.stream is None


# ---------------------------------------------------------------- corrections


def test_a_correction_is_a_line_that_training_can_read(tmp_path: Path) -> None:
    pair = Pair("en", "tw", tmp_path)
    kept = Corrections(None)
    kept.append(pair, "Good\tmorning.\n", " Maakye.\u2028")
    kept.append(pair, "ɛyɛ", "it is good")
    found = [(p.source, p.target) for p in Corpus.of_pairs(tmp_path / "corrections.tsv")]
    assert found == [("Good morning.", "Maakye."), ("ɛyɛ", "it is good")]


def test_each_pair_has_its_file_in_the_folder_that_was_named(tmp_path: Path) -> None:
    kept = Corrections(tmp_path / "new" / "folder")
    kept.append(Pair("en", "tw", tmp_path), "a", "b")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["en-tw.tsv"]


def test_a_line_torn_by_a_crash_does_not_swallow_the_next(tmp_path: Path) -> None:
    pair = Pair("en", "tw", tmp_path)
    (tmp_path / "corrections.tsv").write_bytes(b"a\tb\t2026\nto")
    Corrections(None).append(pair, "c", "d")
    assert (tmp_path / "corrections.tsv").read_text().splitlines()[2].startswith("c\td\t")


def test_a_file_of_corrections_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrections_module, "MOST_BYTES", 60)
    kept, pair = Corrections(None), Pair("en", "tw", tmp_path)
    kept.append(pair, "a", "b")
    with pytest.raises(Refusal, match="full"):
        kept.append(pair, "a" * 50, "b")
    assert len((tmp_path / "corrections.tsv").read_bytes()) <= 60


# ---------------------------------------------------------------- downloads


def test_a_file_waits_for_a_while_under_a_name_nobody_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    downloads = Downloads(clock)
    token = downloads.put("my letter.TXT", b"hello")
    assert re.fullmatch(r"[\w-]{32}\.txt", token)
    found = downloads.get(token)
    assert found is not None and (found.name, found.data) == ("my letter.TXT", b"hello")
    clock.now = downloads_module.KEPT + 1
    assert downloads.get(token) is None


def test_files_that_wait_have_a_bound_and_the_oldest_make_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads_module, "MOST_BYTES", 10)
    downloads = Downloads(Clock())
    first, second = downloads.put("a.txt", b"123456"), downloads.put("b.txt", b"123456")
    assert downloads.get(first) is None and downloads.get(second) is not None


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_this_machine_needs_no_keys_and_may_teach(host: str) -> None:
    settings = Settings(host=host)
    assert settings.on_loopback and settings.takes_corrections


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_other_machines_need_keys_and_do_not_teach_unless_a_folder_is_named(host: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--host {host} can be reached from other machines"):
        Settings(host=host)
    settings = Settings(host=host, keys=tmp_path)
    assert not settings.on_loopback and not settings.takes_corrections
    assert Settings(host=host, keys=tmp_path, corrections=tmp_path).takes_corrections
    assert not Settings(teachable=False).takes_corrections


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"port": 70000}, r"--port \(70000\) must be between"),
        ({"characters": 0}, r"--characters \(0\) must be at least 1"),
        ({"deadline": 1.0, "waiting": 2.0}, r"--waiting \(2 s\) must be below --deadline \(1 s\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, float], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Settings(**given)  # type: ignore[arg-type]


# ---------------------------------------------------------------- languages


def test_languages_have_names_where_we_know_them() -> None:
    assert [name_of(code) for code in ("en", "pt-BR", "twi", "x-source")] == [
        "English",
        "Portuguese (BR)",
        "Twi",
        "x-source",
    ]


def test_examples_are_short_sentences_from_all_over_the_validation_set(tmp_path: Path) -> None:
    pair = Pair("en", "fr", tmp_path)
    assert examples_of(pair) == []
    (tmp_path / "data").mkdir()
    lines = [f"This is sentence number {number}." if number % 2 else "no" for number in range(100)]
    (tmp_path / "data" / "validation.source").write_text("\n".join(lines))
    found = [example["q"] for example in examples_of(pair)]
    assert found == ["This is sentence number 1.", "This is sentence number 33.", "This is sentence number 65."]


def test_two_codes_are_wanted() -> None:
    assert codes_of("en, pt-BR") == ("en", "pt-BR")
    for text in ("en", "en,fr,de", "en,English!", "en,en"):
        with pytest.raises(UsageError, match="two codes are wanted"):
            codes_of(text)


def test_two_runs_for_the_same_languages_are_one_too_many(tmp_path: Path) -> None:
    def load(run: Path) -> None: ...

    pairs = [Pair("en", "fr", tmp_path / "a"), Pair("en", "fr", tmp_path / "b")]
    with pytest.raises(UsageError, match=r"a and .*b both translate en-fr"):
        Translators(pairs, load)  # type: ignore[arg-type]


# ---------------------------------------------------------------- the loop


def test_a_few_go_on_in_each_round_and_everyone_in_the_order_they_came() -> None:
    async def rounds() -> list[list[int]]:
        turns, seen, done = Turns(together=2), list[list[int]](), list[int]()

        async def one(number: int) -> None:
            await turns.take()
            done.append(number)

        tasks = [asyncio.ensure_future(one(number)) for number in range(7)]
        tasks[3].cancel()
        while not all(task.done() for task in tasks):
            before = len(done)
            await asyncio.sleep(0)
            seen.append(done[before:])
        await turns.take()  # and later on there is no wait
        return [some for some in seen if some]

    found = asyncio.run(rounds())
    assert [number for some in found for number in some] == [0, 1, 2, 4, 5, 6]
    assert max(map(len, found)) == 2


def test_the_loop_rests_in_a_flood_and_at_no_other_time_and_still_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr("kente.serve.turns.time.sleep", rests.append)

    async def counted() -> list[int]:
        flood, seen = True, list[int]()
        resting = asyncio.ensure_future(rest_while(lambda: flood))
        for _ in range(10):
            await asyncio.sleep(0)
        seen.append(len(rests))
        flood = False
        for _ in range(10):
            await asyncio.sleep(0)
        resting.cancel()
        return [*seen, len(rests)]

    during, after = asyncio.run(counted())
    assert 8 <= during <= 11 and after - during <= 1
    assert set(rests) == {REST}


def test_answers_leave_at_once_and_do_not_wait_for_acknowledgement() -> None:
    async def delayed() -> int:
        listener = listen(Settings(port=0))
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda reader, writer: accepted.set_result(writer), sock=listener)
        async with server:
            _, client = await asyncio.open_connection(*listener.getsockname())
            connection = (await accepted).get_extra_info("socket")
            option = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            client.close()
            (await accepted).close()
        return int(option)

    assert asyncio.run(delayed()) != 0


def test_a_request_that_comes_as_its_connection_is_to_end_is_answered() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def both() -> tuple[bytes, bytes, bytes]:
        loop, state = asyncio.get_running_loop(), ServerState()
        config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_keep_alive=60)
        config.load()
        kind = guarded(Guard(60.0, 10, lambda why: None))
        server = await loop.create_server(lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            asked, end = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n\r\nok"
            writer.write(asked)
            first = await reader.readuntil(end)
            writer.write(asked)  # in the server's hands, and not read yet
            (connection,) = state.connections
            connection.timeout_keep_alive_handler()
            second = await reader.readuntil(end)
            connection.timeout_keep_alive_handler()  # now nothing is on its way
            rest = await reader.read()
            writer.close()
            return first, second, rest

    first, second, rest = asyncio.run(both())
    assert b"200 OK" in first and b"200 OK" in second and rest == b""
