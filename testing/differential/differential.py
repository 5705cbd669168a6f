"""Runs the same queries on Marigram and DuckDB, and compares. See `run`."""

import collections
import http.client
import json
import os
import random
import sys
import time

import duckdb

from compare import differing, is_intended
from data import Table
from queries import Queries

# Queries per set of data.
QUERIES = 120
SHOWN_MAX = 20


class Marigram:
    """A connection to the server, over HTTP."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, sql, database):
        headers = {"Accept": "application/json"}
        path = f"/api/v1/sql?db={database}&timeout_ms=60000"
        self.connection.request("POST", path, sql.encode(), headers)
        try:
            response = self.connection.getresponse()
            answer = json.loads(response.read())
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.connection.close()
            return ("error", f"500 the answer broke off: {error!r}")
        if response.status != 200:
            error = answer["error"]
            return ("error", f"{response.status} {error.get('sqlstate', '')} {error['message']}")
        return ("rows", answer["rows"])


class DuckDb:
    """An in-memory database."""

    def __init__(self):
        self.connection = duckdb.connect(":memory:", config={"threads": 1})

    def ask(self, sql):
        try:
            return ("rows", self.connection.execute(sql).fetchall())
        except duckdb.Error as error:
            return ("error", str(error))


def verdict(ours, theirs, in_order):
    if ours[0] == "rows" and theirs[0] == "rows":
        return "DIFFERENT" if differing(ours[1], theirs[1], in_order) else "same"
    if ours[0] == "error" and theirs[0] == "error":
        # Both fail. An internal error is never intended.
        return "DIFFERENT" if ours[1].startswith("500") else "both refuse"
    return "intended" if is_intended(ours, theirs) else "DIFFERENT"


def show(ours, theirs, in_order):
    """The differences; for long answers, only the first rows."""
    if ours[0] == "rows" and theirs[0] == "rows":
        for left, right in differing(ours[1], theirs[1], in_order)[:4]:
            print(f"  Marigram: {left}\n  DuckDB:   {right}")
        return
    for name, (kind, answer) in (("Marigram", ours), ("DuckDB", theirs)):
        text = answer if kind == "error" else f"{len(answer)} rows, {answer[:4]}"
        print(f"  {name}: {text}")


def main():
    wanted = int(os.environ.get("MARIGRAM_DIFFERENTIAL_QUERIES", "3000"))
    seed = int(os.environ.get("MARIGRAM_DIFFERENTIAL_SEED", "1"))
    marigram = Marigram(int(os.environ["MARIGRAM_PORT"]))
    counts, kinds, shown = collections.Counter(), collections.Counter(), 0
    began, first = time.monotonic(), seed
    while sum(counts.values()) < wanted:
        rng = random.Random(seed)
        database = f"seed{seed}"
        other = DuckDb()
        created = marigram.ask(f"CREATE DATABASE {database}", "main")
        assert created[0] == "rows", created
        for name in ("r", "q"):
            table = Table(rng, name)
            for sql in table.for_marigram():
                done = marigram.ask(sql, database)
                assert done[0] == "rows", (sql[:300], done)
            for sql in table.for_duckdb():
                done = other.ask(sql)
                assert done[0] == "rows", (sql[:300], done)
        queries = Queries(rng)
        for number in range(QUERIES):
            query = queries.query()
            ours = marigram.ask(query.marigram, database)
            theirs = other.ask(query.duckdb)
            found = verdict(ours, theirs, query.in_order)
            counts[found] += 1
            kinds[query.kind] += 1
            if found == "DIFFERENT" and shown < SHOWN_MAX:
                shown += 1
                print(f"\nseed {seed}, query {number} ({query.kind}):\n  {query.marigram}")
                show(ours, theirs, query.in_order)
                sys.stdout.flush()
        marigram.ask(f"DROP DATABASE {database}", "main")
        seed += 1
    took = time.monotonic() - began
    total = sum(counts.values())
    print(f"{total} queries, seeds {first} to {seed - 1}, in {took:.0f} s: {dict(counts)}")
    print(f"of these kinds: {dict(kinds)}")
    if counts["same"] * 2 < total:
        print("less than half of the queries had an answer of both: the generator is not good")
        sys.exit(1)
    sys.exit(1 if counts["DIFFERENT"] else 0)


if __name__ == "__main__":
    main()
