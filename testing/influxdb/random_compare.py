#!/usr/bin/env python3
"""Writes random rows to InfluxDB and to Marigram, asks both random InfluxQL, and compares the JSON.

    random_compare.py INFLUXDB MARIGRAM [--seed N] [--count N]

Floats may differ by 1e-9 of their size. Each seed has rows of its own for 1,000 statements. Leaves with
1 if a statement differs whose difference is not in DIFFERENCES. Standard library only.
"""

import argparse
import http.client
import json
import math
import random
import re
import sys
import urllib.parse

from random_data import RandomRows
from random_statements import RandomStatements

STATEMENTS_OF_A_SEED = 1000

def series_of(answer):
    """The series of all results."""
    return [series for result in answer["results"] for series in result.get("series", [])]


def changed(answer, change):
    """A copy of an answer that `change` has changed."""
    copy = json.loads(json.dumps(answer))
    change(copy)
    return copy


def each_series(change):
    """What changes an answer by changing each of its series."""

    def change_all(answer):
        for series in series_of(answer):
            change(series)

    return change_all


def without_times(series):
    """A row may have any time."""
    place = series["columns"].index("time")
    for row in series["values"]:
        row[place] = None


def without_modes(series):
    """The most frequent text may be any text."""
    for place, column in enumerate(series["columns"]):
        if column.startswith("mode"):
            for row in series["values"]:
                row[place] = "" if isinstance(row[place], str) else row[place]


def in_order(answer):
    """Series, and the rows of each, may have any order."""
    for result in answer["results"]:
        groups = {}
        for series in result.get("series", []):
            key = json.dumps([series["name"], series.get("tags"), series["columns"]])
            groups.setdefault(key, []).extend(series["values"])
        for rows in groups.values():
            rows.sort(key=json.dumps)
        result["series"] = sorted(groups.items())


def without_fills(series):
    """Texts, booleans and what stands for them may be anything."""
    for row in series["values"]:
        for place in range(1, len(row)):
            row[place] = None


# Statements, by a regular expression, that may differ in what a function takes out, with the reason.
DIFFERENCES = [
    (
        r"integral\(.*GROUP BY",
        in_order,
        "InfluxDB gives the last groups in the order of a hash table",
    ),
    (
        r"^SELECT percentile\([^()]*\)( [-+*/] 2)? FROM (?!.*GROUP BY time)",
        each_series(without_times),
        "of equal values InfluxDB's sort, which is not stable, takes any",
    ),
    (
        r"mode\(s\)",
        each_series(without_modes),
        "of texts that are equally frequent InfluxDB takes any, for the same reason",
    ),
    (
        r"\((s|b|\*|\*::field)\).*fill\([017.5]+\)",
        each_series(without_fills),
        "a column of texts or booleans holds no number",
    ),
]


def is_on_purpose(statement, ours, theirs):
    """Whether two answers differ only as they may."""
    for pattern, change, _ in DIFFERENCES:
        if re.search(pattern, statement) and same(changed(ours, change), changed(theirs, change)):
            return True
    return False


class Server:
    """One of the two."""

    def __init__(self, address):
        self.address = address
        self.connection = None

    def send(self, path, parameters, body=b""):
        target = f"{path}?{urllib.parse.urlencode(parameters)}"
        for attempt in (0, 1):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.address, timeout=60)
            try:
                self.connection.request("POST", target, body=body)
                answer = self.connection.getresponse()
                return answer.status, answer.read().decode()
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt:
                    raise

    def ask(self, text):
        return self.send("/query", {"db": "random", "q": text})[1]

    def write(self, policy, lines):
        parameters = {"db": "random", "rp": policy}
        status, body = self.send("/write", parameters, lines.encode())
        assert status == 204, f"{self.address}: {body}"

    def prepare(self, writes):
        self.ask("DROP DATABASE random")
        self.ask("CREATE DATABASE random")
        self.ask("CREATE RETENTION POLICY long ON random DURATION INF REPLICATION 1")
        for policy, lines in writes:
            self.write(policy, lines)


def same(ours, theirs):
    """Whether two answers are the same but for the last digits of floats."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    return ours == theirs


def compare(influxdb, marigram, seed, count, shown):
    """How many statements of a seed differ, and how many do so on purpose."""
    chance = random.Random(seed)
    writes = list(RandomRows(chance).writes(400))
    for server in (influxdb, marigram):
        server.prepare(writes)
    maker = RandomStatements(chance)
    differ = on_purpose = asked = 0
    while asked < count:
        for statement in maker.statements():
            asked += 1
            theirs, ours = influxdb.ask(statement), marigram.ask(statement)
            if not theirs.startswith("{"):
                # An error inside InfluxDB.
                print(f"{statement}\n  InfluxDB answers {theirs!r}")
                on_purpose += 1
                continue
            read = json.loads(ours), json.loads(theirs)
            if same(*read):
                continue
            if all("results" in answer for answer in read) and is_on_purpose(statement, *read):
                on_purpose += 1
                continue
            differ += 1
            if differ <= shown:
                print(f"{statement}\n  ours   {ours[:600]}\n  theirs {theirs.strip()[:600]}")
    print(f"seed {seed}: {asked} statements, {differ} differ, {on_purpose} differ on purpose")
    return differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("influxdb")
    parser.add_argument("marigram")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--shown", type=int, default=20, help="differences of a seed that are printed")
    options = parser.parse_args()
    influxdb, marigram = Server(options.influxdb), Server(options.marigram)
    differ, seed, left = 0, options.seed, options.count
    while left > 0:
        count = min(left, STATEMENTS_OF_A_SEED)
        differ += compare(influxdb, marigram, seed, count, options.shown)
        seed, left = seed + 1, left - count
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
