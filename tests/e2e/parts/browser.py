"""A headless Chromium, driven through the DevTools protocol: content, console and screenshot of a page."""

import base64
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websocket import WebSocket, create_connection

from parts.process import Process, until

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WITHIN_S = 60

# The browser counts the distinct colours of a screenshot.
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
    """The program, None if there is none; BACKLOG_ADAPTER_CHROMIUM names another one."""
    named = os.environ.get("BACKLOG_ADAPTER_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser(Process):
    """A browser with its profile in the folder."""

    def __init__(self, folder: Path) -> None:
        # As root or in a namespace its sandbox cannot be made; it opens only our files.
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        remote = ["--remote-debugging-port=0", f"--user-data-dir={folder}/profile", "about:blank"]
        super().__init__("chromium", [str(chromium()), *options, *remote], folder)

    @contextmanager
    def page(self, url: str, scheme: str, size: tuple[int, int] = (1280, 900)) -> Iterator["Page"]:
        """A loaded page for a user who prefers this colour scheme."""
        socket = create_connection(self._address(), timeout=_WITHIN_S, suppress_origin=True)
        try:
            yield Page(socket, url, scheme, size)
        finally:
            socket.close()

    def _address(self) -> str:
        port, path = (self.folder / "profile" / "DevToolsActivePort").read_text().split()
        return f"ws://127.0.0.1:{port}{path}"

    def start(self) -> None:
        """Returns when the browser accepts connections."""
        super().start()
        self.ready(self._address, _WITHIN_S)


class Page:
    """One tab. console_errors: the errors and warnings of its console."""

    def __init__(self, socket: WebSocket, url: str, scheme: str, size: tuple[int, int]) -> None:
        self._socket, self._ids, self._session = socket, itertools.count(1), ""
        self.console_errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self._call(f"{domain}.enable")
        width, height = size
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.prefer(scheme)
        self._call("Page.navigate", url=url)
        loaded = "location.href !== 'about:blank' && document.readyState === 'complete'"
        until(lambda: self.evaluate(loaded), _WITHIN_S, url)

    def prefer(self, scheme: str) -> None:
        """Sets the preferred colour scheme: "light" or "dark"."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; waits for a promise."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, to: Path) -> int:
        """Saves the whole page as a PNG and returns its number of distinct colours."""
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=self._whole())
        to.write_bytes(base64.b64decode(shot["data"]))
        # The content security policy of the page forbids the data URL; an empty page has no policy.
        self._call("Page.navigate", url="about:blank")
        until(lambda: self.evaluate("location.href === 'about:blank'"), _WITHIN_S, "an empty page")
        found: int = self.evaluate(_COLOURS % shot["data"])
        return found

    def _whole(self) -> dict[str, float]:
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._ids)
        session = {"sessionId": self._session} if self._session else {}
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters, **session}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._record(message)

    def _record(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.console_errors.append(json.dumps(parameters["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.console_errors.append(json.dumps(parameters["args"])[:500])
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.console_errors.append(parameters["entry"]["text"])
