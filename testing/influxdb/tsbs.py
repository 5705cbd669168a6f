#!/usr/bin/env python3
"""Asks the IoT queries of the Time Series Benchmark Suite in InfluxQL.

    tsbs.py FOLDER check MARIGRAM            compares the answers with those of a real InfluxDB
    tsbs.py FOLDER bench MARIGRAM INFLUXDB   loads both, asks both, and prints the times

FOLDER has iot.influx.gz (line protocol), queries/NAME.K.influx.sql and expected/NAME.K.influx.json, as the
suite's own generators and InfluxDB 1.6.7 made them. `bench` writes every truck --copies times, under other
names; each query runs --rounds times on both in turn, and the median counts. Standard library only.
"""

import argparse
import gzip
import http.client
import json
import math
import pathlib
import re
import statistics
import sys
import time
import urllib.parse

DATABASE = "benchmark"
BATCH_LINES = 10_000
TRUCKS = 20


class Server:
    """A server with InfluxDB's API."""

    def __init__(self, name, address):
        self.name = name
        self.connection = http.client.HTTPConnection(address, timeout=600)

    def send(self, path, body, headers):
        self.connection.request("POST", path, body=body, headers=headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def ask(self, text, database=DATABASE):
        parameters = urllib.parse.urlencode({"db": database, "q": text})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.send("/query", parameters, headers)[1]

    def load(self, batches):
        """Writes batches of lines; returns the seconds that writing took."""
        self.ask(f"DROP DATABASE {DATABASE}")
        self.ask(f"CREATE DATABASE {DATABASE}")
        seconds = 0.0
        for body in batches:
            begin = time.perf_counter()
            status, answer = self.send(f"/write?db={DATABASE}", body, {})
            seconds += time.perf_counter() - begin
            assert status == 204, f"{self.name}: {status} {answer[:300]}"
        return seconds


def lines_of(folder, copies):
    """The lines, with each truck `copies` times."""
    truck = re.compile(rb"name=truck_(\d+)")
    with gzip.open(folder / "iot.influx.gz") as file:
        for line in file:
            found = truck.search(line)
            yield line
            if not found:
                continue
            head, number, tail = line[: found.start(1)], int(found[1]), line[found.end(1) :]
            for copy in range(1, copies):
                yield b"%s%d%s" % (head, number + copy * TRUCKS, tail)


def batches_of(folder, copies):
    held = []
    for line in lines_of(folder, copies):
        held.append(line)
        if len(held) == BATCH_LINES:
            yield b"".join(held)
            held = []
    if held:
        yield b"".join(held)


def queries_of(folder):
    return sorted((folder / "queries").glob("*.influx.sql"))


def same(ours, theirs):
    """Whether two values are the same but for the last digits of floats."""
    is_number = all(type(value) in (int, float) for value in (ours, theirs))
    if is_number:
        return math.isclose(ours, theirs, rel_tol=1e-9)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    return type(ours) is type(theirs) and ours == theirs


def check(folder, server):
    """How many answers differ from those of the folder."""
    server.load(batches_of(folder, 1))
    differ = 0
    queries = queries_of(folder)
    for query in queries:
        name = query.name.removesuffix(".sql")
        expected = json.loads((folder / "expected" / f"{name}.json").read_text())
        answer = server.ask(query.read_text())
        if not same(json.loads(answer), expected):
            differ += 1
            print(f"{name}\n  ours   {answer.decode()[:1000]}\n  theirs {json.dumps(expected)[:1000]}")
    print(f"TSBS: {len(queries)} answers, {differ} differ")
    return differ


def timed(server, text):
    begin = time.perf_counter()
    answer = server.ask(text)
    return time.perf_counter() - begin, answer


def bench(folder, servers, copies, rounds):
    """Prints a table of medians in milliseconds, and of their ratio."""
    batches = list(batches_of(folder, copies))
    lines = sum(body.count(b"\n") for body in batches)
    loads = [server.load(batches) for server in servers]
    del batches
    print(f"{lines:,} lines, {TRUCKS * copies:,} trucks; medians of {rounds}")
    print("| | Marigram | InfluxDB | ratio |\n|---|---|---|---|")
    rates = [lines / seconds for seconds in loads]
    print(f"| load, lines/s | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[0] / rates[1]:.2f} |")
    for query in queries_of(folder):
        if not query.name.endswith(".0.influx.sql"):
            continue
        text = query.read_text()
        times = [[], []]
        lengths = [0, 0]
        for _ in range(rounds):
            for place, server in enumerate(servers):
                seconds, answer = timed(server, text)
                times[place].append(seconds * 1000)
                lengths[place] = len(answer)
        ours, theirs = (statistics.median(all) for all in times)
        name = query.name.removesuffix(".0.influx.sql")
        note = "" if abs(lengths[0] - lengths[1]) <= 0.02 * lengths[1] + 64 else f" ({lengths})"
        print(f"| {name}{note} | {ours:.1f} ms | {theirs:.1f} ms | {ours / theirs:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("what", choices=["check", "bench"])
    parser.add_argument("marigram")
    parser.add_argument("influxdb", nargs="?")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    marigram = Server("Marigram", options.marigram)
    if options.what == "check":
        return 1 if check(options.folder, marigram) else 0
    if not options.influxdb:
        parser.error("bench needs the address of InfluxDB")
    servers = (marigram, Server("InfluxDB", options.influxdb))
    bench(options.folder, servers, options.copies, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
