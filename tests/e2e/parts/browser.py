"""A headless Chromium, spoken to by its DevTools protocol: what a page says, draws, and looks like."""

import base64
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websocket import WebSocket, create_connection

from parts.process import Process, until

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WITHIN_S = 60

# The distinct colours of a screenshot, told by the browser itself.
_COLOURS = """
(async () => {
  const picture = new Image();
  picture.src = "data:image/png;base64,%s";
  await picture.decode();
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  return new Set(new Uint32Array(canvas.getImageData(0, 0, picture.width, picture.height).data.buffer)).size;
})()
"""


def chromium() -> str | None:
    """The program, None where there is none; BACKLOG_ADAPTER_CHROMIUM names another."""
    named = os.environ.get("BACKLOG_ADAPTER_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser with a profile of its own in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # It may run as root, or in a namespace in which its own sandbox cannot be made; it opens our files alone.
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        remote = ["--remote-debugging-port=0", f"--user-data-dir={folder}/profile", "about:blank"]
        self._process = Process("chromium", [str(chromium()), *options, *remote], folder)

    @contextmanager
    def page(self, url: str, scheme: str, size: tuple[int, int] = (1280, 900)) -> Iterator["Page"]:
        """A page, loaded, for a reader who prefers this colour scheme."""
        socket = create_connection(self._address(), timeout=_WITHIN_S, suppress_origin=True)
        try:
            yield Page(socket, url, scheme, size)
        finally:
            socket.close()

    def _address(self) -> str:
        port, path = (self._folder / "profile" / "DevToolsActivePort").read_text().split()
        return f"ws://127.0.0.1:{port}{path}"

    def __enter__(self) -> Self:
        self._process.start()
        self._process.ready(lambda: self._address(), _WITHIN_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()


class Page:
    """One tab. complaints: errors and warnings of its console, so far."""

    def __init__(self, socket: WebSocket, url: str, scheme: str, size: tuple[int, int]) -> None:
        self._socket, self._ids, self._session = socket, itertools.count(1), ""
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self._call(f"{domain}.enable")
        width, height = size
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.prefer(scheme)
        self._call("Page.navigate", url=url)
        until(
            lambda: self.asked("location.href !== 'about:blank' && document.readyState === 'complete'"), _WITHIN_S, url
        )

    def prefer(self, scheme: str) -> None:
        """The reader changes his mind: "light" or "dark"."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def asked(self, expression: str) -> Any:
        """What a JavaScript expression is worth; promises are waited for."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, to: Path) -> int:
        """Save the whole page as a PNG; how many different colours it has."""
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=self._whole())
        to.write_bytes(base64.b64decode(shot["data"]))
        # A policy of the page forbids data that it does not name; an empty page has none.
        self._call("Page.navigate", url="about:blank")
        until(lambda: self.asked("location.href === 'about:blank'"), _WITHIN_S, "an empty page")
        found: int = self.asked(_COLOURS % shot["data"])
        return found

    def _whole(self) -> dict[str, float]:
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._ids)
        session = {"sessionId": self._session} if self._session else {}
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters, **session}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("id") == number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]
            self._hear(said)

    def _hear(self, said: dict[str, Any]) -> None:
        parameters = said.get("params", {})
        match said.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(parameters["args"])[:500])
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.complaints.append(parameters["entry"]["text"])
