"""What a browser is shown: the page and its parts, the explorer, and how to use the server from a program."""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from kente.decode.translator import Translator
from kente.errors import KenteError
from kente.serve.asking import Fields, fields_of
from kente.serve.attending import admit, attended
from kente.serve.docs import docs_page
from kente.serve.openapi import openapi
from kente.serve.refusals import Refusal, bad_request, busy
from kente.serve.serving import LOOKS_AT_ONCE, Serving
from kente.serve.swagger import swagger
from kente.serve.translators import Pair

POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}

_OWN_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


class Asset:
    """A file of the page, in memory, with a fingerprint by which a browser knows whether it has it."""

    def __init__(self, name: str, data: bytes) -> None:
        self.data = data
        self.type = TYPES.get("." + name.rpartition(".")[2], "application/octet-stream")
        self.tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'

    def answer(self, request: Request) -> Response:
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.data, headers={**headers, "Content-Type": self.type})


def assets() -> dict[str, Asset]:
    """The files of the page by name; nothing outside this list can be asked for."""
    folder = files("kente.serve").joinpath("assets")
    there = folder.iterdir() if folder.is_dir() else ()
    return {file.name: Asset(file.name, file.read_bytes()) for file in there if file.is_file()}


class Pages:
    """The routes over what is served."""

    def __init__(self, serving: Serving) -> None:
        self.serving, self.assets = serving, assets()
        self._looking = ThreadPoolExecutor(1, "kente-look")

    def routes(self) -> list[Route]:
        return [
            Route("/", self.index, methods=["GET"]),
            Route("/assets/{name}", self.asset, methods=["GET"]),
            Route("/docs", self.docs, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/spec", self.spec, methods=["GET"]),
            Route("/look", self.look, methods=["GET", "POST"]),
        ]

    async def index(self, request: Request) -> Response:
        return self._asset("index.html").answer(request)

    async def asset(self, request: Request) -> Response:
        return self._asset(request.path_params["name"]).answer(request)

    def _asset(self, name: str) -> Asset:
        found = self.assets.get(name)
        if found is None:
            raise Refusal(404, "there is no such file", why="no file")
        return found

    def description(self) -> dict[str, Any]:
        return openapi(self.serving.translators, self.serving.settings)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(self.description())

    async def spec(self, request: Request) -> Response:
        return JSONResponse(swagger(self.description()))

    async def docs(self, request: Request) -> Response:
        return HTMLResponse(docs_page(self.description()), headers={"Content-Security-Policy": POLICY})

    # ------------------------------------------------------------ the explorer

    async def look(self, request: Request) -> Response:
        """Where the model looks when it translates a sentence. One at a time: it is work for every core."""
        serving = self.serving
        fields = await fields_of(request, serving.settings)
        admit(serving, request, fields)
        pair, sentence = self._to_look_at(fields)
        if serving.looks >= LOOKS_AT_ONCE:
            raise busy(serving.settings.deadline)
        serving.looks += 1
        try:
            page = await attended(request, self._explored(pair, sentence), serving.settings.deadline)
        except KenteError as error:
            raise bad_request(str(error)) from None
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise Refusal(404, "the explorer needs torch, which is not installed here", why="no torch") from None
        finally:
            serving.looks -= 1
        own = _OWN_POLICY.search(page)
        policy = html.unescape(own[1]) if own else "default-src 'none'"
        return HTMLResponse(page, headers={"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"})

    def _to_look_at(self, fields: Fields) -> tuple[Pair, str]:
        source, target = (fields.text(name, "a language's code") for name in ("source", "target"))
        sentence = fields.text("q", "the sentence to look into")
        pair = self.serving.translators.pairs.get((source, target))
        if pair is None:
            raise bad_request(f"{source[:40]} is not translated to {target[:40]} here")
        if not sentence.strip():
            raise bad_request("q is empty: there is nothing to look into")
        most = self.serving.settings.looked_at
        if len(sentence) > most:
            raise bad_request(f"q has {len(sentence):,} characters; look into one sentence of at most {most:,}")
        return pair, sentence

    async def _explored(self, pair: Pair, sentence: str) -> str:
        translator = self.serving.translators.of(pair)
        sentence = sentence.lower() if pair.lowercase else sentence
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._looking, _explorer_page, {pair.run.name: translator}, sentence)


def _explorer_page(translators: dict[str, Translator], sentence: str) -> str:
    from kente import api  # imports torch, which a server may well do without
    from kente.show import explorer

    return explorer.page(api.look(translators, sentence))
