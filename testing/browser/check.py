"""Web pages must not affect a running Marigram unless they are allowed."""

import contextlib
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from chromium import Chromium

HERE = pathlib.Path(__file__).parent
REBOUND = "rebound.example"


class Marigram:
    """A server on free ports with its own directory and some data."""

    def __init__(self, binary, folder, *options):
        self.folder = pathlib.Path(folder)
        self.backups = self.folder / "backups"
        self.process = subprocess.Popen(
            [binary, "serve", "--data", str(self.folder / "data"), "--http", "127.0.0.1:0",
             "--postgres", "127.0.0.1:0", "--backup-dir", str(self.backups), *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.http = self.postgres = None
        for line in self.process.stdout:
            if found := re.search(r"HTTP +http://127\.0\.0\.1:(\d+)", line):
                self.http = int(found[1])
            if found := re.search(r"PostgreSQL +postgres://127\.0\.0\.1:(\d+)", line):
                self.postgres = int(found[1])
            if "Ctrl-C" in line:
                break
        assert self.http and self.postgres, "the server did not start"
        self.sql("CREATE TABLE canary (time TIMESTAMP, v DOUBLE)")
        self.sql("INSERT INTO canary VALUES ('2024-01-01', 1)")

    def sql(self, statement):
        url = f"http://127.0.0.1:{self.http}/api/v1/sql"
        with urllib.request.urlopen(url, statement.encode(), timeout=30) as answer:
            return json.load(answer)["rows"]

    def state(self):
        """Everything that a page could change."""
        rows = {}
        tables = sorted(row[0] for row in self.sql("SHOW TABLES"))
        for table in tables:
            rows[table] = self.sql(f'SELECT count(*) FROM "{table}"')[0][0]
        return {"databases": self.sql("SHOW DATABASES"), "rows": rows,
                "backups": self.backups.exists()}

    def refusals(self):
        """Number of requests answered with 403 so far."""
        url = f"http://127.0.0.1:{self.http}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            text = answer.read().decode()
        found = re.findall(r'server_requests_total\{[^}]*status="403"[^}]*\} (\d+)', text)
        return sum(map(int, found))

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


@contextlib.contextmanager
def page_server():
    """Starts a foreign web server on another port; returns its port."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"<!doctype html><title>a page of somebody else</title><body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


def attack(browser, page, base, postgres):
    """Runs all attacks from a page; returns what the page saw."""
    attacks = (HERE / "attacks.js").read_text()
    target = json.dumps({"base": base, "postgres": postgres})
    return browser.run(page, f"({attacks[attacks.index('async'):].rstrip()})({target})")


def check_foreign_pages(browser, marigram, port):
    """Pages from another port must neither change nor read anything."""
    before = marigram.state()
    for page_host in ["127.0.0.1", "localhost"]:
        page = browser.open(f"http://{page_host}:{port}/")
        for host in ["127.0.0.1", "localhost"]:
            base = f"http://{host}:{marigram.http}"
            refused = marigram.refusals()
            seen = attack(browser, page, base, f"http://{host}:{marigram.postgres}/")
            assert marigram.state() == before, f"{page_host} at {base}: {marigram.state()}"
            # Of what a page must not read, it may at most see that it exists.
            through = {name: what for name, what in seen.items()
                       if what not in ("blocked", "opaque")}
            assert not through, f"{page_host} at {base}: {through}"
            # The requests arrived and were refused: the browser did not block all of them.
            came = marigram.refusals() - refused
            assert came >= 25, f"only {came} requests of {len(seen)} attacks came"
            print(f"page at {page_host}, server at {host}: {len(seen)} attacks, "
                  f"{came} requests refused, nothing changed")


def check_links(browser, marigram, port):
    """A link that a reader follows, or a pasted address, must not either."""
    before = marigram.state()
    url = f"http://127.0.0.1:{marigram.http}/api/v1/sql?q=DROP%20TABLE%20canary"
    page = browser.open(f"http://127.0.0.1:{port}/")
    browser.run(page, f"void (location.href = {json.dumps(url)})")
    time.sleep(0.5)
    browser.open(url)
    assert marigram.state() == before
    print("links and pasted addresses: nothing changed")


def check_rebinding(browser, marigram):
    """A page whose name was rebound to this machine has the server's origin, and is refused."""
    before = marigram.state()
    page = browser.open(f"http://{REBOUND}:{marigram.http}/health")
    script = """(async () => {
      const sent = [["POST", "/api/v1/sql", "DROP TABLE canary"],
                    ["POST", "/write?db=main", "intruder v=1"],
                    ["POST", "/api/v1/backup", ""],
                    ["GET", "/api/v1/sql?q=SELECT%20*%20FROM%20canary"],
                    ["GET", "/metrics"], ["GET", "/health"], ["GET", "/nowhere"]];
      const answers = sent.map(([method, path, body]) => fetch(path, { method, body }));
      return (await Promise.all(answers)).map((answer) => answer.status);
    })()"""
    statuses = browser.run(page, script)
    assert statuses == [403] * 7, statuses
    assert marigram.state() == before
    print("a rebound name: 7 requests refused, nothing changed")


def check_allowed(browser, marigram, port):
    """An allowed page can do it all, so the attacks above would do harm if they were admitted."""
    page = browser.open(f"http://127.0.0.1:{port}/")
    base = f"http://127.0.0.1:{marigram.http}"
    script = """(async (base) => {
      const wrote = await fetch(`${base}/write?db=main`, {
        method: "POST", headers: { Authorization: "Token x" }, body: "intruder v=1" });
      const read = await fetch(`${base}/api/v1/sql?q=SELECT%20v%20FROM%20intruder`);
      const rows = (await read.json()).rows;
      const dropped = await fetch(`${base}/api/v1/sql`, { method: "POST", body: "DROP TABLE canary" });
      const got = await fetch(`${base}/api/v1/sql?q=DROP%20TABLE%20intruder`);
      return [wrote.status, rows, dropped.status, got.status];
    })"""
    seen = browser.run(page, f"{script}({json.dumps(base)})")
    assert seen == [204, [[1]], 200, 405], seen
    assert marigram.state()["rows"] == {"intruder": 1}, marigram.state()
    # Another page is not allowed.
    other = browser.open(f"http://localhost:{port}/")
    wrote = f"fetch('{base}/write?db=main', {{method: 'POST', body: 'x v=1'}})"
    seen = browser.run(other, f"{wrote}.then(() => 'through', () => 'blocked')")
    assert seen == "blocked" and marigram.state()["rows"] == {"intruder": 1}
    print("an allowed page: writes, reads and drops by POST; by GET it only reads")


def main():
    binary, program = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(page_server())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        closed = Marigram(binary, f"{folder}/closed")
        stack.callback(closed.stop)
        allowed = Marigram(binary, f"{folder}/allowed",
                           "--allowed-origins", f"http://127.0.0.1:{port}")
        stack.callback(allowed.stop)
        browser = Chromium(program, f"MAP {REBOUND} 127.0.0.1")
        stack.callback(browser.close)
        check_foreign_pages(browser, closed, port)
        check_links(browser, closed, port)
        check_rebinding(browser, closed)
        check_allowed(browser, allowed, port)
    print("browser: ok")


main()
