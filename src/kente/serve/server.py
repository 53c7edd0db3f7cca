"""Starting, running and stopping: the socket first, then the models, and at the end nothing that was taken on is dropped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from kente.decode.translator import Translator
from kente.errors import UsageError
from kente.serve.app import app_of
from kente.serve.clients import Clients, Keys, Pace
from kente.serve.connection import Guard, guarded
from kente.serve.corrections import Corrections
from kente.serve.front import Gate
from kente.serve.logs import Forwarded, Log
from kente.serve.office import Office
from kente.serve.queue import Queue, Ticket
from kente.serve.serving import Serving
from kente.serve.settings import Settings
from kente.serve.translators import Pair, Translators
from kente.serve.turns import rest_while
from kente.serve.wording import Detector
from kente.serve.worker import Worker

BACKLOG = 2048
"""Connections that may wait to be looked at."""
COLLECTED = 20_000
"""Objects made between two collections: few of ours refer to each other in circles."""
QUIET = 0.3
"""Seconds without work before a server that is to stop does: an answer may still be on its way, and a client about to hear of it."""


class Server(uvicorn.Server):
    """uvicorn's server, stopped by us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def assemble(
    pairs: Sequence[Pair], detector: Detector | None, settings: Settings, load: Callable[[Path], Translator], log: Log
) -> Serving:
    """The parts of a server, nothing loaded yet."""
    translators = Translators(pairs, load)
    queue = Queue(translators.width, settings.waiting)
    return Serving(
        settings=settings,
        translators=translators,
        queue=queue,
        office=Office(translators, queue, detector),
        clients=Clients(Keys.read(settings.keys) if settings.keys else None, Pace(settings.rate)),
        corrections=Corrections(settings.corrections) if settings.takes_corrections else None,
        log=log,
    )


def listen(settings: Settings) -> socket.socket:
    """The socket, so that a port that is taken is known before anything is loaded."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # named, since asyncio turns off the 40 ms wait for acknowledgements (TCP_NODELAY) only where it sees TCP
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; choose another with --port, or 0 for any"
        ) from None
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(serving: Serving, listener: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    """Serve until a signal asks to stop. `started` is called when the models are loaded."""
    _allow_connections(serving.settings.connections)
    problem = asyncio.run(_serve(serving, listener, started))
    if problem is not None:
        raise problem


async def _serve(serving: Serving, listener: socket.socket, started: Callable[[], None]) -> BaseException | None:
    loop, settings = asyncio.get_running_loop(), serving.settings
    gate = Gate(serving)
    guard = Guard(
        settings.receipt, settings.connections, lambda why: serving.metrics.cut.add(why=why), gate, gate.closed
    )
    server = Server(
        uvicorn.Config(
            app_of(serving),
            http=guarded(guard),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.behind_proxy,
            timeout_keep_alive=settings.idle,
            backlog=BACKLOG,
        )
    )
    problems: list[BaseException] = []

    def failed(error: BaseException) -> None:
        problems.append(error)
        loop.call_soon_threadsafe(stop_now)

    def stop_now() -> None:
        server.should_exit = server.force_exit = True

    def prepare() -> None:
        serving.translators.load()
        _settle_memory()
        serving.log.write("ready", pairs=[str(pair) for pair in serving.translators.pairs.values()])
        loop.call_soon_threadsafe(started)

    def tell(tickets: Sequence[Ticket]) -> None:
        loop.call_soon_threadsafe(_wake, tickets)

    worker = Worker(
        serving.queue,
        serving.translators.translate,
        tell,
        prepare=prepare,
        failed=failed,
        done=lambda batch, seconds: serving.metrics.batch(len(batch.places), seconds),
    )
    handler = Forwarded(serving.log)
    logging.getLogger("uvicorn").addHandler(handler)
    stopping = Stopping(serving, server)
    beside = [
        asyncio.ensure_future(guard.watch(lambda: server.server_state.connections)),
        asyncio.ensure_future(rest_while(gate.closed)),
    ]
    try:
        with stopping.on_signals(loop):
            worker.start()
            await server.serve(sockets=[listener])
    finally:
        for task in beside:
            task.cancel()
        serving.queue.close()
        logging.getLogger("uvicorn").removeHandler(handler)
        serving.log.sum_up()
        serving.log.write("stopped")
    return problems[0] if problems else None


def _settle_memory() -> None:
    """What is loaded now stays: the collector need not look through it again and again while people wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED)


def _wake(tickets: Sequence[Ticket]) -> None:
    for ticket in tickets:
        ticket.wake()


class Stopping:
    """The first signal lets everything that was taken on come to its end; the second stops at once."""

    def __init__(self, serving: Serving, server: Server) -> None:
        self.serving, self.server = serving, server
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def on_signals(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        signals = []
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError, RuntimeError):  # in a thread, whoever started it stops it
                loop.add_signal_handler(number, self)
                signals.append(number)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def __call__(self) -> None:
        if self._task is not None:
            self.server.should_exit = self.server.force_exit = True
            return
        self.serving.draining = True
        self.serving.log.write("stopping", working=self.serving.working)
        self._task = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        loop, quiet_since = asyncio.get_running_loop(), None
        while quiet_since is None or loop.time() - quiet_since < QUIET:
            await asyncio.sleep(0.02)
            quiet_since = None if self.serving.working else quiet_since or loop.time()
        self.server.should_exit = True


def _allow_connections(wanted: int) -> None:
    """Each is an open file; the usual limit is low, and may be raised as far as the system's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = wanted + 200
    if soft != resource.RLIM_INFINITY and soft < room:
        most = room if hard == resource.RLIM_INFINITY else min(room, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def serve(
    pairs: Sequence[Pair],
    detector: Detector | None,
    settings: Settings,
    load: Callable[[Path], Translator],
    log: Log,
    said: Callable[[str], None],
) -> None:
    """Serve runs until a signal asks to stop; `said(address)` is called when everything is ready."""
    serving = assemble(pairs, detector, settings, load, log)
    listener = listen(settings)
    address = address_of(listener)
    log.write("listening", address=address)
    run(serving, listener, lambda: said(address))
