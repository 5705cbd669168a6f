#!/usr/bin/env python3
"""Asks a real InfluxDB what it says to the statements of crates/influxql/tests/statements/.

It starts `influxd` on ports of its own with its data in a temporary directory, posts each statement
to /query, and compares: errors of the parser and of the compiler word for word, and statements that
run with what InfluxDB's log prints of them. Databases and policies that InfluxDB writes into a
statement before it logs it are taken out on both sides.

    testing/influxql/compare.py [--influxd PATH] [TABLE …]

Leaves with 1 if a statement differs that is not in KNOWN. Python's standard library only.
"""

import argparse
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

TABLES = pathlib.Path(__file__).parents[2] / "crates/influxql/tests/statements"

# Statements, by a regular expression, that cannot be compared, with the reason.
KNOWN = [
    (r"\s$", "the HTTP interface takes blanks off before the parser sees them"),
]

# What InfluxDB rewrites before it logs it: only whether it is read is compared.
REWRITTEN = re.compile(r"SHOW (MEASUREMENT|SERIES|TAG|FIELD)")

CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{dir}/meta"
[data]
  dir = "{dir}/data"
  wal-dir = "{dir}/wal"
[monitor]
  store-enabled = false
[continuous_queries]
  enabled = false
[http]
  bind-address = "127.0.0.1:{http}"
  log-enabled = false
"""

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "s": " ", "\\": "\\"}


def unescape(text):
    return re.sub(r"\\(.)", lambda found: ESCAPES[found.group(1)], text)


def rows(path):
    """The statements of a table with their answers; see crates/influxql/tests/statements.rs."""
    statement = None
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("  "):
            answer = unescape(line[2:])
            yield statement, "=" + statement if answer == "=" else answer
        elif line and not line.startswith("#"):
            statement = unescape(line)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class InfluxDB:
    """A running influxd with a database `db` that has a policy `rp`."""

    def __init__(self, binary, directory):
        self.port = free_port()
        config = CONFIG.format(rpc=free_port(), http=self.port, dir=directory)
        path = pathlib.Path(directory, "influxd.conf")
        path.write_text(config)
        self.log_path = pathlib.Path(directory, "log")
        log = self.log_path.open("wb")
        command = [binary, "run", "-config", str(path)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.seen = 0
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ping").close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            self.stop()
            sys.exit("influxd does not answer:\n" + self.log_path.read_text())
        self.prepare()

    def prepare(self):
        self.query("CREATE DATABASE db")
        self.query("CREATE RETENTION POLICY rp ON db DURATION INF REPLICATION 1")

    def query(self, text):
        """The answer of /query, and the statements that were logged meanwhile."""
        form = urllib.parse.urlencode({"q": text, "db": "db"}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/query", form)
        try:
            body = urllib.request.urlopen(request).read()
        except urllib.error.HTTPError as error:
            body = error.read()
        with self.log_path.open("rb") as log:
            log.seek(self.seen)
            lines = log.read()
            self.seen += len(lines)
        logged = re.findall(r'msg="Executing query".* query=(".*"|\S+)$', lines.decode(), re.M)
        return json.loads(body), [
            json.loads(text) if text.startswith('"') else text for text in logged
        ]

    def version(self):
        ping = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ping")
        return ping.headers["X-Influxdb-Version"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def without_places(text):
    """A statement without the databases and policies that InfluxDB may have written into it."""
    return re.sub(r'\b(db\.)?(autogen|rp)?\.(?=[\w"/:])|\bdb\.(?=[\w"/:])| ON (db|rp)\b', "", text)


def compare(influxdb, statement, expected):
    """What InfluxDB says where it is something else, and whether it printed the statement."""
    answer, logged = influxdb.query(statement)
    error = answer.get("error")
    if error is not None:
        said = "!" + error.removeprefix("error parsing query: ")
        return None if said == expected else said, False
    errors = [result["error"] for result in answer.get("results", []) if "error" in result]
    if any("retention policy not found" in error for error in errors) and expected[0] == "~":
        influxdb.prepare()
        return compare(influxdb, statement, expected)
    if expected.startswith("~"):
        said = "~" + errors[-1] if errors else "= ran"
        return None if said == expected else said, False
    if expected.startswith("!"):
        return "= ran", False
    if not logged or REWRITTEN.search(statement):
        return None, False
    printed, expected = without_places(";\n".join(logged)), without_places(expected[1:])
    # A statement that fails ends the query: those behind it are not logged.
    if printed == expected or errors and expected.startswith(printed):
        return None, True
    return "=" + printed, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--influxd", default="influxd")
    parser.add_argument("tables", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    counts = {"!": [0, 0], "~": [0, 0], "=": [0, 0]}
    unknown = known = printed = 0
    tables = sorted(path for path in TABLES.glob("*.txt") if path.name != "own.txt")
    with tempfile.TemporaryDirectory() as directory:
        influxdb = InfluxDB(arguments.influxd, directory)
        try:
            print("InfluxDB", influxdb.version())
            for path in arguments.tables or tables:
                for statement, expected in rows(path):
                    said, was_printed = compare(influxdb, statement, expected)
                    printed += was_printed and said is None
                    count = counts[expected[0]]
                    count[0] += 1
                    count[1] += said is None
                    if said is None:
                        continue
                    if any(re.search(pattern, statement) for pattern, _ in KNOWN):
                        known += 1
                        continue
                    unknown += 1
                    print(f"{statement}\n  expected {expected}\n  InfluxDB {said}")
        finally:
            influxdb.stop()
    kinds = {"!": "refused by the parser", "~": "refused by the compiler", "=": "accepted"}
    for sign, (total, equal) in counts.items():
        print(f"{kinds[sign]}: {equal} of {total} equal")
    print(f"of those accepted, {printed} printed by InfluxDB, equal")
    print(f"differences: {known} known, {unknown} not")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
