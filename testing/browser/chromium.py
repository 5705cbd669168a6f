"""Headless Chromium, driven through a pipe with the DevTools protocol."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """A browser with its own profile; `resolver_rules` map names to addresses."""

    def __init__(self, program, resolver_rules):
        self.profile = tempfile.mkdtemp(prefix="marigram-browser-")
        child_in, self.commands = os.pipe()
        self.answers, child_out = os.pipe()
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
            f"--user-data-dir={self.profile}", f"--host-resolver-rules={resolver_rules}",
        ]
        # The protocol uses descriptors 3 and 4.
        script = f'exec "$0" "$@" 3<&{child_in} 4>&{child_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, program, *flags, "about:blank"],
            pass_fds=(child_in, child_out), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )
        os.close(child_in)
        os.close(child_out)
        self.pending = b""
        self.number = 0

    def send(self, method, session=None, timeout_s=30, **parameters):
        """Sends a command and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + timeout_s
        while True:
            while b"\0" not in self.pending:
                left = until - time.monotonic()
                if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                    raise TimeoutError(f"Chromium did not answer {method} in {timeout_s} s")
                part = os.read(self.answers, 1 << 16)
                if not part:
                    raise ConnectionError("Chromium ended")
                self.pending += part
            answer, self.pending = self.pending.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url):
        """Opens a page and returns its session once the page has loaded."""
        target = self.send("Target.createTarget", url=url)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        until = time.monotonic() + 30
        ready = "location.href !== 'about:blank' && document.readyState === 'complete'"
        while not self.run(session, ready):
            if time.monotonic() > until:
                raise TimeoutError(f"{url} was not loaded")
            time.sleep(0.05)
        return session

    def run(self, session, script):
        """Runs a script in a page, awaits its promise, and returns the result."""
        done = self.send("Runtime.evaluate", session, expression=script, awaitPromise=True,
                         returnByValue=True, userGesture=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"])
        return done["result"].get("value")

    def close(self):
        """Ends the browser and deletes its profile."""
        try:
            self.send("Browser.close", timeout_s=5)
            self.process.wait(10)
        except (OSError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            # Only the process group that was started with it.
            os.killpg(self.process.pid, 9)
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
