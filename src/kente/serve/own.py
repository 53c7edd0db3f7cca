"""Our own routes: translations with sentences, words, confidence and attention; streams; files with progress; what operators look at."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from kente.serve import answers
from kente.serve.asking import Asked, asked, fields_of
from kente.serve.attending import Events, admit, attended, message_of, note, paced
from kente.serve.files import Files, Job
from kente.serve.office import Done, Text
from kente.serve.openapi import METRICS
from kente.serve.refusals import bad_request
from kente.serve.serving import Serving
from kente.serve.wording import Span


class Own:
    """The routes over what is served."""

    def __init__(self, serving: Serving, files: Files) -> None:
        self.serving, self.files = serving, files

    def routes(self) -> list[Route]:
        return [
            Route("/v1/translate", self.translate, methods=["POST"]),
            Route("/v1/stream", self.stream, methods=["POST"]),
            Route("/v1/file", self.file, methods=["POST"]),
            Route("/ready", self.ready, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
        ]

    async def _asked(self, request: Request) -> Asked:
        fields = await fields_of(request, self.serving.settings)
        admit(self.serving, request, fields)
        wanted = asked(fields, self.serving.settings, rich=True)
        note(request, texts=len(wanted.texts), characters=wanted.characters, target=wanted.target)
        return wanted

    def _answer(self, wanted: Asked, done: list[Done], began: float) -> dict[str, Any]:
        for one in done:
            self.serving.metrics.characters.add(len(one.source), source=one.language, target=wanted.target)
        languages = done[0].language if done else wanted.source, wanted.target
        pair = self.serving.translators.pairs.get(languages)
        engine = self.serving.translators.engine(pair) if pair is not None else "none"
        return answers.rich(wanted, done, engine, time.perf_counter() - began)

    async def translate(self, request: Request) -> Response:
        began, wanted = time.perf_counter(), await self._asked(request)
        done = await attended(request, self.serving.office.translate(wanted), self.serving.settings.deadline)
        return JSONResponse(self._answer(wanted, done, began))

    # ------------------------------------------------------------ a text, sentence by sentence

    async def stream(self, request: Request) -> Response:
        began, wanted = time.perf_counter(), await self._asked(request)
        if wanted.listed:
            raise bad_request("q must be one text here; a list is translated by /v1/translate")
        items = paced(self.serving.office.stream(wanted), self.serving.settings.deadline)
        first = await attended(request, anext(items), self.serving.settings.deadline)
        return Events(self._events(wanted, first, items, began))

    async def _events(
        self, wanted: Asked, first: Any, items: AsyncGenerator[Any], began: float
    ) -> AsyncGenerator[tuple[str, str]]:
        running = Running(wanted)
        async with contextlib.aclosing(items):
            try:
                yield self._event(running, first, began)
                async for item in items:
                    yield self._event(running, item, began)
            except Exception as error:
                self.serving.log.failure(error, route="/v1/stream")
                yield "error", _json({"error": message_of(error)})

    def _event(self, running: Running, item: Any, began: float) -> tuple[str, str]:
        if isinstance(item, Done):
            return "done", _json(self._answer(running.asked, [item], began))
        return "sentence", _json(running.sentence(*item))

    # ------------------------------------------------------------ files

    async def file(self, request: Request) -> Response:
        return Events(self._file_events(await self.files.accept(request)))

    async def _file_events(self, job: Job) -> AsyncGenerator[tuple[str, str]]:
        items = paced(self.files.progress(job), self.serving.settings.file_deadline)
        async with contextlib.aclosing(items):
            try:
                yield "progress", _json({"done": 0, "of": len(job.document.sentences)})
                async for first, second in items:
                    if isinstance(first, int):
                        yield "progress", _json({"done": first, "of": second})
                    else:
                        yield "done", _json({"url": f"download_file/{first}", "name": second})
            except Exception as error:
                self.serving.log.failure(error, route="/v1/file")
                yield "error", _json({"error": message_of(error)})

    # ------------------------------------------------------------ for operators

    async def ready(self, request: Request) -> Response:
        refusal = self.serving.closed()
        if refusal is not None:
            raise refusal
        return JSONResponse(
            {"status": "ready", "pairs": [str(pair) for pair in self.serving.translators.pairs.values()]}
        )

    async def metrics(self, request: Request) -> Response:
        if self.serving.clients.keys is not None:
            admit(self.serving, request)
        return PlainTextResponse(self.serving.metrics.page(**self.serving.now()), media_type=METRICS)


@dataclass(frozen=True)
class Provisional:
    """Where a sentence stands in its text, and its translation in what there is of the translated text."""

    source: Span
    target: Span
    unit: Any

    def source_span(self, start: int, end: int) -> Span:
        return self.unit.page_span(start, end)

    def target_span(self, start: int, end: int) -> Span:
        return self.target[0] + start, self.target[0] + end


class Running:
    """A text whose sentences come one by one: they are laid out as they come, with what stands between them in the source."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.written = asked, ""
        self._source_end = 0

    def sentence(self, text: Text, number: int) -> dict[str, Any]:
        assert text.reading is not None
        unit, found = text.reading.units[number], text.found[number]
        self.written += text.source[self._source_end : unit.page[0]]
        start = len(self.written)
        self.written += found.text
        self._source_end = max(self._source_end, unit.page[1])
        placed = Provisional(unit.page, (start, len(self.written)), unit)
        whole = answers.sentence(self.asked, text.source, self.written, text.sentences[number], found, placed)
        return {"number": number + 1, "of": len(text.sentences), "text": found.text, **whole}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
