"""LibreTranslate's routes, as its clients know them."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kente.errors import KenteError
from kente.serve import answers
from kente.serve.asking import asked, body_of, check_length, fields_of
from kente.serve.attending import admit, attended, note
from kente.serve.examples import examples_of
from kente.serve.files import Files
from kente.serve.languages import name_of
from kente.serve.refusals import Refusal, bad_request
from kente.serve.serving import Serving
from kente.serve.wording import FORMATS

TYPING_PAUSE = 500
"""Milliseconds a page should wait for the next key before it translates."""


class Libre:
    """The routes over what is served."""

    def __init__(self, serving: Serving, files: Files) -> None:
        self.serving, self.files = serving, files
        pairs = serving.translators.pairs.values() if serving.settings.on_loopback else ()
        self.examples = [
            example for pair in pairs for example in examples_of(pair)
        ]  # a corpus may be nobody else's business

    def routes(self) -> list[Route]:
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages, methods=["GET"]),
            Route("/translate_file", self.translate_file, methods=["POST"]),
            Route("/download_file/{name}", self.download_file, methods=["GET"]),
            Route("/suggest", self.suggest, methods=["POST"]),
            Route("/frontend/settings", self.settings, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
        ]

    async def translate(self, request: Request) -> Response:
        serving = self.serving
        fields = await fields_of(request, serving.settings)
        admit(serving, request, fields)
        wanted = asked(fields, serving.settings)
        note(request, texts=len(wanted.texts), characters=wanted.characters, target=wanted.target)
        done = await attended(request, serving.office.translate(wanted), serving.settings.deadline)
        for one in done:
            serving.metrics.characters.add(len(one.source), source=one.language, target=wanted.target)
        return JSONResponse(answers.libre(wanted, done))

    async def detect(self, request: Request) -> Response:
        fields = await fields_of(request, self.serving.settings)
        admit(self.serving, request, fields)
        text = fields.text("q", "the text whose language is asked for")
        check_length(len(text), self.serving.settings)
        guesses = await asyncio.to_thread(self.serving.office.detect, text)
        return JSONResponse([{"language": g.language, "confidence": round(g.confidence, 1)} for g in guesses])

    async def languages(self, request: Request) -> Response:
        await body_of(request, self.serving.settings.body_bytes)  # some clients send one; it says nothing
        translators = self.serving.translators
        codes = dict.fromkeys([*translators.sources, *translators.targets])
        known = [{"code": c, "name": name_of(c), "targets": translators.targets_of(c)} for c in codes]
        return JSONResponse(known)

    async def translate_file(self, request: Request) -> Response:
        job = await self.files.accept(request)
        token, _ = await attended(request, self.files.translate(job), self.serving.settings.file_deadline)
        return JSONResponse({"translatedFileUrl": f"{request.base_url}download_file/{token}"})

    async def download_file(self, request: Request) -> Response:
        file = self.serving.downloads.get(request.path_params["name"])
        if file is None:
            raise Refusal(404, "no such file: it was fetched long ago, or never was", why="no file")
        return Response(
            file.data,
            media_type="application/octet-stream",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"},
        )

    async def suggest(self, request: Request) -> Response:
        """A better translation of a text, kept for the next training."""
        serving = self.serving
        if serving.corrections is None:
            raise Refusal(403, "corrections are not taken here", why="no corrections")
        if request.headers.get("sec-fetch-site") == "cross-site":
            raise Refusal(403, "corrections are not taken from other sites", why="cross-site")
        fields = await fields_of(request, serving.settings)
        client = admit(serving, request, fields)
        source, target = (fields.text(name, "a language's code") for name in ("source", "target"))
        text = fields.text("q", "the text that was translated")
        better = fields.text("s", "its better translation")
        check_length(len(text) + len(better), serving.settings)
        pair = serving.translators.pairs.get((source, target))
        if pair is None:
            raise bad_request(f"{source[:40]} is not translated to {target[:40]} here, so nothing is learnt about it")
        if not (text.strip() and better.strip()):
            raise bad_request("q and s must both hold some text: there is nothing to learn from an empty one")
        serving.teaching.take(client)
        try:
            await asyncio.to_thread(serving.corrections.append, pair, text, better)
        except (OSError, KenteError) as error:
            serving.log.failure(error)
            raise Refusal(503, "the correction could not be written; try later", why="disk", retry_after=60) from None
        serving.metrics.corrections.add(source=source, target=target)
        return JSONResponse({"success": True})

    async def settings(self, request: Request) -> Response:
        serving = self.serving
        source, target = next(iter(serving.translators.pairs))
        return JSONResponse(
            {
                "charLimit": serving.settings.characters,
                "frontendTimeout": TYPING_PAUSE,
                "apiKeys": serving.clients.keys is not None,
                "keyRequired": serving.clients.keys is not None,
                "suggestions": serving.corrections is not None,
                "filesTranslation": True,
                "supportedFilesFormat": list(FORMATS),
                "examples": self.examples,
                "language": {
                    "source": {"code": source, "name": name_of(source)},
                    "target": {"code": target, "name": name_of(target)},
                },
            }
        )

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})
