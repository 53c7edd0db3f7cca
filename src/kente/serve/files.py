"""Files: taken in, translated a window of sentences at a time, and kept to be fetched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import PurePath

from starlette.requests import Request

from kente.errors import KenteError
from kente.serve.asking import AUTO, form_with_file
from kente.serve.attending import admit, note
from kente.serve.office import Progress
from kente.serve.refusals import bad_request, busy
from kente.serve.serving import FILES_AT_ONCE, Serving
from kente.serve.wording import FORMATS, Document, open_document

SAMPLE = 2_000
"""Characters by which a file's language is told."""


@dataclass(frozen=True)
class Job:
    """A file to be translated."""

    name: str
    data: bytes
    document: Document
    source: str
    target: str


class Files:
    """Translates files, a few at a time."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving

    async def accept(self, request: Request) -> Job:
        """The file of a request, read; refused if it is none that can be translated."""
        serving = self.serving
        fields, file = await form_with_file(request, serving.settings)
        admit(serving, request, fields)
        source = fields.text("source", f"the code of the language it is in, or {AUTO}")
        target = fields.text("target", "the code of the language it should be in")
        serving.office.check(source, target)
        if file is None:
            raise bad_request("file is missing: the file to translate, with its name")
        name, data = file
        if not name.lower().endswith(FORMATS):
            raise bad_request(f"files of this kind cannot be translated; these can: {', '.join(FORMATS)}")
        if serving.files >= FILES_AT_ONCE:
            raise busy(serving.settings.deadline)
        try:
            if source == AUTO:
                source = self._language(await asyncio.to_thread(open_document, name, data, True, False), target)
            pair = serving.translators.pairs.get((source, target))
            habits = serving.translators.habits(pair) if pair else (True, False)
            document = await asyncio.to_thread(open_document, name, data, *habits)
        except KenteError as error:
            raise bad_request(str(error)) from None
        note(request, bytes=len(data), sentences=len(document.sentences), source=source, target=target)
        return Job(PurePath(name).name, data, document, source, target)

    def _language(self, document: Document, target: str) -> str:
        sample = "\n".join(document.sentences)[:SAMPLE]
        possible = {*self.serving.translators.sources_of(target), target}
        guesses = self.serving.office.detect(sample)
        found = next((guess.language for guess in guesses if guess.language in possible), None)
        if found is None:
            raise bad_request(f"the language of the file is none that is translated to {target} here; name the source")
        return found

    async def translate(self, job: Job, told: Progress | None = None) -> tuple[str, str]:
        """(what the translation can be fetched as, its file name)."""
        serving, data = self.serving, job.data  # which stays as it is, if it is in the right language already
        serving.files += 1
        try:
            if job.source != job.target:
                data = await serving.office.translate_document(job.document, job.source, job.target, told)
        finally:
            serving.files -= 1
        name = f"{PurePath(job.name).stem}.{job.target}{PurePath(job.name).suffix}"
        return serving.downloads.put(name, data), name

    async def progress(self, job: Job) -> AsyncGenerator[tuple[int, int] | tuple[str, str]]:
        """(sentences done, of how many) as it goes on, and at the end what `translate` gives."""
        news: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        task = asyncio.ensure_future(self.translate(job, lambda done, of: news.put((done, of))))
        try:
            while not task.done():
                waiting = asyncio.ensure_future(news.get())
                await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    yield waiting.result()
                else:
                    waiting.cancel()
            while not news.empty():
                yield news.get_nowait()
            yield task.result()
        finally:
            task.cancel()
