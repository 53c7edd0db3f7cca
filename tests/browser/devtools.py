"""A headless Chromium on a pipe: just enough of the DevTools protocol to open a page, look, and click.

Chromium reads commands from file descriptor 3 and writes answers and events to 4, each a JSON object that ends with a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 60.0
"""Seconds to wait for an answer before the browser is given up as dead; far more than one ever takes."""
CODES = {
    "Backspace": 8,
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
"""What the browser itself acts on when a key is pressed: without it only the page hears of the key."""
SHIFT, CONTROL = 8, 2
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One browser process; use as a context manager."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # descriptors above 4, so that moving one to its place cannot overwrite the other
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, ends), *command],
            pass_fds=ends,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._in, selectors.EVENT_READ)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._selector.close()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that arrive meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def wait_for(self, method: str, session: str | None = None, **wanted: Any) -> dict[str, Any]:
        """The first event of this name that holds `wanted`, among those kept or yet to come."""
        seen = 0
        while True:
            for event in self.events[seen:]:
                parameters = event["params"]
                fits = all(parameters.get(name) == value for name, value in wanted.items())
                if event["method"] == method and event.get("sessionId") == session and fits:
                    return dict(parameters)
            seen = len(self.events)
            self._receive()

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise OSError("the browser has gone")
            self._buffer += data
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


class Page:
    """One tab; a fresh one shares no storage with any other and must be closed."""

    def __init__(self, browser: Browser, *, fresh: bool = False) -> None:
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext") if fresh else {}
        target = browser.call("Target.createTarget", url="about:blank", **self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def close(self) -> None:
        self.browser.call("Target.disposeBrowserContext", **self.context)

    def open(self, path: Path | str, *, width: int = 1280, scheme: str = "light", script: bool = True) -> None:
        """Load a page from disk or an address into a window so wide, with or without JavaScript; earlier events are forgotten."""
        self.resize(width)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.browser.events.clear()
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self.browser.wait_for("Page.loadEventFired", self.session)

    def resize(self, width: int, height: int = 900) -> None:
        narrow = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=narrow)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON would carry it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "an exception"))
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until a JavaScript condition holds; pages may come and go meanwhile."""
        deadline, trouble = time.monotonic() + PATIENCE, ""
        while time.monotonic() < deadline:
            try:
                if self.evaluate(f"Boolean({condition})"):
                    return
            except RuntimeError as error:
                trouble = f" ({error})"
            time.sleep(0.02)
        raise TimeoutError(f"never true: {condition}{trouble}")

    def middle(self, element: str) -> tuple[float, float]:
        """Where the middle of an element, given as a JavaScript expression, is in the window after scrolling to it."""
        x, y = self.evaluate(
            f"(element => {{ element.scrollIntoView({{block: 'center', inline: 'nearest', behavior: 'instant'}});"
            f" const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] }})({element})"
        )
        return x, y

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, element: str) -> None:
        x, y = self.middle(element)
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, modifiers: int = 0) -> None:
        named: dict[str, Any] = {"key": key, "code": key, "modifiers": modifiers}
        if key in CODES:
            named["windowsVirtualKeyCode"] = CODES[key]
        text = {"Enter": "\r", " ": " "}.get(key)
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Key by key into whatever has the focus."""
        for letter in text:
            if letter == "\n":
                self.press("Enter")
            elif len(letter.encode("utf-16-le")) > 2:
                self.call("Input.insertText", text=letter)  # no keyboard has a key for it
            else:
                self.call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
                self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def choose_files(self, element: str, *paths: Path) -> None:
        """What the file chooser would do."""
        field = self.call("Runtime.evaluate", expression=element)["result"]["objectId"]
        self.call("DOM.setFileInputFiles", files=[str(path) for path in paths], objectId=field)

    def downloads_to(self, folder: Path) -> None:
        where = {"downloadPath": str(folder), **self.context}
        self.browser.call("Browser.setDownloadBehavior", behavior="allow", eventsEnabled=True, **where)

    def picture(self, path: Path) -> None:
        """The whole page as PNG, for people to look at."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Every error and warning of the console, and every exception, since the page was opened."""
        found = []
        for event in self.browser.events:
            match event:
                case {
                    "method": "Runtime.consoleAPICalled",
                    "params": {"type": "error" | "warning" | "assert", "args": arguments},
                }:
                    found.append(" ".join(str(a.get("value", a.get("description"))) for a in arguments))
                case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                    found.append(str(details.get("exception", details).get("description", details["text"])))
                case {"method": "Log.entryAdded", "params": {"entry": {"level": "error" | "warning", "text": text}}}:
                    found.append(text)
        return found

    def requests(self) -> list[str]:
        """Every address asked for since the page was opened."""
        sent = [event for event in self.browser.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]
