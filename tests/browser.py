"""A headless Chromium that tests can drive, over a pipe: no driver, no port, nothing to install but the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 60.0

# The browser reads commands from descriptor 3 and answers on 4; both are moved up first, so that neither is overwritten.
START = """
import fcntl, os, sys
up = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
os.dup2(up[0], 3)
os.dup2(up[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page. `problems` collects what its console said: errors of scripts, and what the page's policy refused."""

    def __init__(self, executable: str, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        words = (
            executable, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        )  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(to_browser), str(from_browser), *words],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest, self._session = 0, b"", ""
        self._events: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **params: Any) -> Any:
        """One command of the browser's protocol, and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._event(answer)

    def _event(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"])[:500])
        elif message.get("method") == "Log.entryAdded":
            self.problems.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        self._events.append(message)

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    # --- what tests do ----------------------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Go to an address and wait until the page is loaded."""
        self._events.clear()
        if "loaderId" not in self.call("Page.navigate", url=url):
            return  # another place of the page that is there already
        end = time.monotonic() + SECONDS
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._event(self._receive(end))

    def js(self, expression: str) -> Any:
        """The value of an expression in the page. The page's policy does not hold for it."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:500])
        return found["result"].get("value")

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name: str) -> None:
        """`light` or `dark`, as the system would say."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, file: Path, top: int | None = None, height: int = 1000) -> None:
        """The window, or with `top` a part of the page."""
        clip: dict[str, Any] = {}
        if top is not None:
            width = self.js("document.documentElement.clientWidth")
            clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": top, "width": width, "height": height, "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        file.write_bytes(base64.b64decode(data))
