#!/usr/bin/env python3
"""How long a page of `headway trace` takes to open in a browser without a window, from its file; and pictures of it.

The page itself notes when its first picture was drawn, and when all of it was there (data-first and data-ready of its
body, ms since the navigation began). A Chromium or Chrome is spoken to over its pipe: no network, no package.

  python bench/page_opening.py /usr/bin/chromium headway-run-1/trace.html --shots out
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

WIDE, HIGH = 1400, 1000
PATIENCE = 60.0  # s
VIEWS = {  # of the time line: a script each
    "whole": "",
    "tenth": "timeline.view.t0 = timeline.meta.duration * .45; timeline.view.t1 = timeline.meta.duration * .55; "
    "timeline.again()",
    "rows": "timeline.view.seen = Math.min(8, timeline.meta.rows); timeline.view.t0 = timeline.meta.duration * .5; "
    "timeline.view.t1 = timeline.view.t0 + Math.min(timeline.meta.duration, 2e7); timeline.again()",
    "wait": "(() => { const k = timeline.kept; let i = 0; "
    "for (let j = 0; j < k.time.length; j++) if (k.time[j] > k.time[i]) i = j; "
    "if (k.time.length) timeline.go(k.row[i], k.begin[i], k.time[i]); })()",
}


class Browser:
    """A page of it. Only this thread speaks to it; it ends with the `with`."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __enter__(self) -> Browser:
        (theirs, self.ours), (self.answers, back) = os.pipe(), os.pipe()

        def prepare() -> None:
            high = [os.dup2(fd, 60 + n) for n, fd in enumerate((theirs, back))]  # neither may be 3 or 4
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.folder = tempfile.TemporaryDirectory(prefix="headway-browser-")
        self.process = subprocess.Popen(
            [
                self.program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                "--no-first-run", "--disable-background-networking", f"--user-data-dir={self.folder.name}",
                f"--window-size={WIDE},{HIGH}",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=prepare,
        )  # fmt: skip
        os.close(theirs)
        os.close(back)
        self.rest, self.number, self.session = b"", 0, ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=WIDE, height=HIGH, deviceScaleFactor=1, mobile=False)
        return self

    def __exit__(self, *_problem: object) -> None:
        os.close(self.ours)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.folder.cleanup()

    def ask(self, method: str, **more: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": more}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.ours, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                text = os.read(self.answers, 1 << 20)
                if not text:
                    raise SystemExit(f"{self.program} ended by itself")
                self.rest += text
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def value(self, script: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise SystemExit(f"{script}: {found['exceptionDetails']['exception'].get('description', 'failed')}")
        return found["result"].get("value")

    def open(self, file: Path) -> tuple[float, float]:
        """Seconds until its first picture, and until all of it is there."""
        self.ask("Page.navigate", url=file.resolve().as_uri())
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            first, ready, wrong = self.value(
                "(() => { const b = document.body, p = document.getElementById('problem');"
                "return b ? [b.dataset.first, b.dataset.ready, p && !p.hidden ? p.textContent : ''] : ['', '', '']; "
                "})()"
            )
            if wrong:
                raise SystemExit(f"{file}: {wrong}")
            if ready:
                return float(first) / 1e3, float(ready) / 1e3
            time.sleep(0.05)
        raise SystemExit(f"{file} was not drawn in {PATIENCE:g} s")

    def shot(self, file: Path) -> None:
        twice = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300)))"
        self.value(f"new Promise(done => {twice})")
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


def opening(program: str, file: Path) -> tuple[float, float]:
    with Browser(program) as browser:
        return browser.open(file)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("browser")
    words.add_argument("page", type=Path)
    words.add_argument("--shots", type=Path, help="a folder for pictures")
    line = words.parse_args()
    with Browser(line.browser) as browser:
        first, ready = browser.open(line.page)
        print(f"first picture {first:.2f} s, all of it {ready:.2f} s")
        if line.shots:
            line.shots.mkdir(parents=True, exist_ok=True)
            for name, script in VIEWS.items():
                browser.value(script)
                browser.shot(line.shots / f"{name}.png")


if __name__ == "__main__":
    main()
