#!/usr/bin/env python3
"""Compares answers of random InfluxQL with those of a real InfluxDB.

Random rows (nulls, several types, series without a tag, times that two series share) go into both,
then random statements of every clause. Floats may differ by 1e-9 of their size. Needs a running
`influxd` and the program `answers`:

    cargo build --release -p marigram-influx --example answers
    testing/influxql/answers.py --url http://127.0.0.1:8086 --seed 1 --count 1000

Leaves with 1 if a statement differs whose difference is not in KNOWN. Standard library only.
"""

import argparse
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]
SECOND = 10**9

# Statements, by a regular expression, that may differ, with the reason.
KNOWN = [
    (r"sample\(", "chance decides which points are shown"),
    (r"integral\(.*GROUP BY", "InfluxDB gives the last groups in the order of a hash table"),
]


class Influx:
    """A real InfluxDB."""

    def __init__(self, url, database):
        self.url, self.database = url, database
        self.ask(f"DROP DATABASE {database}")
        self.ask(f"CREATE DATABASE {database}")

    def ask(self, text):
        query = urllib.parse.urlencode({"db": self.database, "epoch": "ns", "q": text})
        request = urllib.request.Request(f"{self.url}/query?{query}", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def write(self, lines):
        url = f"{self.url}/write?db={self.database}"
        urllib.request.urlopen(urllib.request.Request(url, data=lines.encode())).read()


class Rows:
    """Random rows in line protocol."""

    def __init__(self, chance):
        self.chance = chance

    def lines(self, count):
        lines, taken = [], set()
        for _ in range(count):
            name = self.chance.choice(["cpu", "cpu", "cpu", "mem"])
            tags = ""
            if self.chance.random() < 0.8:
                tags += ",host=" + self.chance.choice("abc")
            if self.chance.random() < 0.5:
                tags += ",region=" + self.chance.choice(["eu", "us"])
            # Times that two series share are ordered by chance in InfluxDB.
            time = self.chance.randrange(0, 1200 * SECOND, SECOND // 4)
            if (name, time) in taken:
                continue
            taken.add((name, time))
            fields = []
            if self.chance.random() < 0.9:
                fields.append(f"v={self.chance.randrange(-40, 400) / 8}")
            if self.chance.random() < 0.7:
                fields.append(f"i={self.chance.randrange(-20, 50)}i")
            if self.chance.random() < 0.5:
                fields.append(f's="{self.chance.choice(["x", "y", "zz", ""])}"')
            if self.chance.random() < 0.4:
                fields.append(f"b={self.chance.choice('tf')}")
            if name == "mem" and self.chance.random() < 0.6:
                fields.append(f"used={self.chance.randrange(100)}i")
            if fields:
                lines.append(f"{name}{tags} {','.join(fields)} {time}")
        return "\n".join(lines)


class Statements:
    """Random statements."""

    def __init__(self, chance):
        self.chance = chance

    def pick(self, *choices):
        return self.chance.choice(choices)

    def maybe(self, share, text):
        return text if self.chance.random() < share else ""

    def number_field(self):
        return self.pick("v", "v", "i", "i", "used", "nothing")

    def any_field(self):
        return self.pick("v", "i", "s", "b", "used")

    def condition(self, depth=0):
        if depth < 2 and self.chance.random() < 0.35:
            op = self.pick("AND", "OR", "AND")
            return f"({self.condition(depth + 1)} {op} {self.condition(depth + 1)})"
        return self.pick(
            f"host = '{self.pick('a', 'b', '', 'q')}'",
            f"host != '{self.pick('a', 'c', '')}'",
            f"host =~ /{self.pick('a|b', '^c', '.*', 'x')}/",
            f"host !~ /{self.pick('a', '^b$', '.')}/",
            f"region = '{self.pick('eu', 'us', '')}'",
            f"v {self.pick('>', '<', '>=', '<=', '=', '!=')} {self.chance.randrange(-5, 45)}",
            f"i {self.pick('>', '<', '=', '!=')} {self.chance.randrange(-5, 45)}",
            f"i {self.pick('>', '<')} {self.chance.randrange(-5, 45)}.5",
            f"s = '{self.pick('x', 'y', '')}'",
            f"s != '{self.pick('x', 'zz')}'",
            f"s =~ /{self.pick('x|y', 'z', '^$')}/",
            f"b = {self.pick('true', 'false')}",
            f"v + i > {self.chance.randrange(-5, 60)}",
            "nothing = 'x'",
            "nothing != 'x'",
        )

    def where(self, needs_range=False):
        parts = []
        if needs_range or self.chance.random() < 0.5:
            start = self.chance.randrange(0, 900)
            end = start + self.chance.randrange(1, 600)
            parts.append(f"time >= {start}s AND time {self.pick('<', '<=')} {end}s")
        if self.chance.random() < 0.4:
            parts.append(self.condition())
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def source(self):
        return self.pick("cpu", "cpu", "cpu", "mem", "cpu, mem", "/cpu|mem/", "none")

    def tags(self):
        return self.pick("host", "region", "host, region", "*", "/h.*/", "nothing")

    def tail(self, limits=True):
        text = self.maybe(0.25, " ORDER BY time DESC")
        if limits and self.chance.random() < 0.3:
            text += f" LIMIT {self.chance.randrange(1, 5)}"
            text += self.maybe(0.4, f" OFFSET {self.chance.randrange(0, 4)}")
        return text

    def aggregate(self):
        return self.pick(
            f"count({self.any_field()})",
            f"sum({self.number_field()})",
            f"mean({self.number_field()})",
            f"min({self.number_field()})",
            f"max({self.number_field()})",
            f"first({self.any_field()})",
            f"last({self.any_field()})",
            f"median({self.number_field()})",
            f"spread({self.number_field()})",
            f"stddev({self.number_field()})",
            f"mode({self.any_field()})",
            f"percentile({self.number_field()}, {self.pick(5, 50, 90, 99.9)})",
            f"count(distinct({self.any_field()}))",
        )

    def transform(self, inner):
        return self.pick(
            f"derivative({inner}, {self.pick('1s', '1m')})",
            f"non_negative_derivative({inner}, 10s)",
            f"difference({inner})",
            f"non_negative_difference({inner})",
            f"cumulative_sum({inner})",
            f"moving_average({inner}, {self.pick(2, 3)})",
            f"elapsed({inner}, 1s)",
        )

    def fill(self):
        return self.maybe(
            0.6, f" fill({self.pick('none', 'null', '0', '7', '1.5', 'previous', 'linear')})"
        )

    def raw(self):
        columns = self.pick(
            "v",
            "v, i",
            "*",
            "*::field",
            "v, host",
            "host, region, s, i",
            "v + i, v / i, i % 3, v * 2 - 1",
            "i & 3, i | 1, b",
            "v::integer, i::float, s::float",
            "abs(v), pow(i, 2), floor(v), round(v), sqrt(v)",
            "s, b",
            "nothing, v",
            "host",
            "/^[iv]$/",
            "v AS i, i AS v",
            "-v, (v - i) * 2",
        )
        group = self.maybe(0.3, f" GROUP BY {self.tags()}")
        fill = self.maybe(0.05, " fill(3)")
        series = self.maybe(0.15, " SLIMIT 2") if group else ""
        series += self.maybe(0.4, " SOFFSET 1") if series else ""
        return f"SELECT {columns} FROM {self.source()}{self.where()}{group}{fill}{self.tail()}{series}"

    def grouped(self):
        columns = ", ".join(self.aggregate() for _ in range(self.pick(1, 1, 2, 3)))
        if self.chance.random() < 0.15:
            columns = f"{self.aggregate()} {self.pick('+', '-', '*', '/')} {self.pick('2', 'sum(v)', 'count(i)')}"
        if self.chance.random() < 0.1:
            columns = self.pick("count(*)", "mean(*)", "last(*)", "max(/^[iv]/)", "first(*::field)")
        by_time = self.chance.random() < 0.6
        groups = []
        if by_time:
            offset = self.maybe(0.3, f", {self.pick('10s', '-7s', '3m')}")
            groups.append(f"time({self.pick('1m', '100s', '5m', '37s')}{offset})")
        if self.chance.random() < 0.4:
            groups.append(self.tags())
        group = f" GROUP BY {', '.join(groups)}" if groups else ""
        fill = self.fill() if by_time else ""
        series = self.maybe(0.1, " SLIMIT 2") if group else ""
        where = self.where(needs_range=by_time)
        return f"SELECT {columns} FROM {self.source()}{where}{group}{fill}{self.tail()}{series}"

    def selector(self):
        name = self.pick("first", "last", "min", "max")
        columns = f"{name}({self.pick('v', 'i')}), {self.pick('host', 's', 'i, region', 'b, v')}"
        by_time = self.chance.random() < 0.4
        groups = [f"time({self.pick('2m', '5m')})"] if by_time else []
        if self.chance.random() < 0.3:
            groups.append(self.tags())
        group = f" GROUP BY {', '.join(groups)}" if groups else ""
        return f"SELECT {columns} FROM cpu{self.where(by_time)}{group}{self.tail()}"

    def transformed(self):
        if self.chance.random() < 0.5:
            columns = self.transform(self.pick("v", "i"))
            group = self.maybe(0.4, f" GROUP BY {self.tags()}")
            return f"SELECT {columns} FROM cpu{self.where()}{group}{self.tail()}"
        inner = f"{self.pick('mean', 'sum', 'max', 'last', 'count')}({self.pick('v', 'i')})"
        columns = self.transform(inner)
        group = f" GROUP BY time({self.pick('1m', '2m')}){self.maybe(0.3, ', host')}"
        return f"SELECT {columns} FROM cpu{self.where(True)}{group}{self.fill()}{self.tail()}"

    def picked(self):
        columns = self.pick(
            f"top(v, {self.pick(1, 2, 5)})",
            f"bottom(i, {self.pick(1, 3)})",
            "top(v, host, 2)",
            "bottom(v, region, 2)",
            "distinct(i)",
            "distinct(s)",
            "DISTINCT b",
            "integral(v)",
            "integral(i, 1m)",
        )
        by_time = self.chance.random() < 0.4
        group = f" GROUP BY time({self.pick('2m', '5m')})" if by_time else self.maybe(0.3, " GROUP BY host")
        return f"SELECT {columns} FROM cpu{self.where(by_time)}{group}{self.tail(False)}"

    def nested(self):
        inner_group = self.pick("", " GROUP BY host", " GROUP BY host, region", " GROUP BY time(1m)", " GROUP BY time(2m), host")
        inner = self.pick("mean(v) AS m", "max(v) AS m", "sum(i) AS m", "count(v) AS m", "v AS m, i AS n", "last(i) AS m")
        if "AS n" in inner:
            inner_group = self.pick("", " GROUP BY host")
        where = self.where("time" in inner_group)
        subquery = f"(SELECT {inner} FROM cpu{where}{inner_group})"
        if self.chance.random() < 0.1:
            subquery = f"(SELECT sum(m) AS m FROM {subquery})"
        outer = self.pick("m", "mean(m)", "max(m)", "sum(m)", "count(m)", "*", "m * 2", "m, host", "first(m)")
        group = self.pick("", "", " GROUP BY host") if "host" in inner_group else ""
        condition = self.maybe(0.2, f" WHERE m > {self.pick(1, 5, 20)}")
        return f"SELECT {outer} FROM {subquery}{condition}{group}{self.tail()}"

    def show(self):
        return self.pick(
            "SHOW MEASUREMENTS",
            "SHOW MEASUREMENTS WITH MEASUREMENT =~ /c/",
            "SHOW TAG KEYS",
            "SHOW TAG KEYS FROM cpu",
            "SHOW TAG VALUES WITH KEY = host",
            f"SHOW TAG VALUES FROM cpu WITH KEY =~ /.*/ WHERE host = '{self.pick('a', 'b', '')}'",
            "SHOW TAG VALUES WITH KEY IN (host, region) LIMIT 2",
            "SHOW FIELD KEYS",
            "SHOW FIELD KEYS FROM mem",
            "SHOW SERIES",
            f"SHOW SERIES FROM cpu WHERE region = '{self.pick('eu', '')}'",
            "SHOW SERIES EXACT CARDINALITY",
            "SHOW MEASUREMENT EXACT CARDINALITY",
            "SHOW TAG KEY EXACT CARDINALITY",
            "SHOW TAG VALUES EXACT CARDINALITY WITH KEY = host",
            "SHOW FIELD KEY EXACT CARDINALITY",
        )

    def statement(self):
        kinds = [self.raw] * 5 + [self.grouped] * 7 + [self.selector] * 2 + [self.transformed] * 3
        kinds += [self.picked] * 2 + [self.nested] * 3 + [self.show]
        return self.chance.choice(kinds)()


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8086")
    parser.add_argument("--answers", default=str(ROOT / "target/release/examples/answers"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--shown", type=int, default=20, help="differences that are printed")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    lines = Rows(chance).lines(options.rows)
    maker = Statements(chance)
    statements = [maker.statement() for _ in range(options.count)]
    influx = Influx(options.url, "answers")
    influx.write(lines)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "lines").write_text(lines)
        (folder / "statements").write_text("\n".join(statements))
        command = [options.answers, folder / "lines", folder / "statements"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    answers = run.stdout.splitlines()
    assert len(answers) == len(statements), (len(answers), len(statements), run.stderr)
    equal = differing = known = 0
    for statement, ours in zip(statements, answers):
        theirs = influx.ask(statement)
        if same(json.loads(ours), json.loads(theirs)):
            equal += 1
        elif any(re.search(pattern, statement) for pattern, _ in KNOWN):
            known += 1
        else:
            differing += 1
            if differing <= options.shown:
                print(f"{statement}\n  ours   {ours[:600]}\n  theirs {theirs.strip()[:600]}")
    share = 100 * equal / max(1, len(statements))
    print(f"seed {options.seed}: {equal} equal ({share:.1f} %), {known} known, {differing} differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
