"""Runs the same random statements on Marigram and on PostgreSQL 15, and compares all that they answer.

A round has a database of its own on both sides, with one to four random reference tables: any types, keys,
foreign keys, checks, defaults and identities (tables.py, values.py). Then come blocks (statements.py) of INSERT,
UPDATE, DELETE (changes.py), TRUNCATE, ALTER TABLE (definitions.py) and queries (selects.py), alone or in a
transaction with savepoints, with literals or with parameters in text and binary; now and then a second session
looks on. Values come from small domains, so that constraints fire.

Compared are rows, as typed Python values and in order where the query has one, the names of columns, row
counts and command tags, the SQLSTATE of errors with the name of the violated constraint, and after each block
the whole content of all tables. What differs on purpose is listed with its reason in differences.py. Anything
else is printed with both answers and the statements that led there, and the program leaves with 1.

After a difference in a statement that changes something, the round ends: what follows would differ, too.
Environment: see `run`.
"""

import collections
import os
import random
import sys
import time

from answers import Session, same, what_differs
from differences import on_purpose
from minimize import minimized
from statement import Statement
from statements import Statements

STATEMENTS_OF_A_ROUND = 120
SHOWN_MAX = 20
# Differences of one cause that are printed.
SHOWN_OF_A_GROUP = 3


class RoundEnds(Exception):
    """The two databases are no longer alike."""


class Databases:
    """A fresh database on both sides, with two sessions each."""

    def __init__(self, servers, name):
        self.servers, self.name = servers, name
        for server, own in self.named():
            server.run(f"DROP DATABASE IF EXISTS {own}")
            server.run(f"CREATE DATABASE {own}")
        self.sessions = [[Session(server.port, own) for server, own in self.named()] for _ in range(2)]

    def named(self):
        """The servers with the names of their databases; both may be one server."""
        return zip(self.servers, (f"{self.name}_ours", f"{self.name}_theirs"))

    def ask(self, statement):
        return [session.ask(statement) for session in self.sessions[statement.session]]

    def close(self):
        for session in sum(self.sessions, []):
            session.close()
        for server, own in self.named():
            server.run(f"DROP DATABASE IF EXISTS {own}")


class Server:
    """One of the two."""

    def __init__(self, port, database):
        self.port, self.database = port, database

    def run(self, text):
        session = Session(self.port, self.database)
        try:
            return session.run(text)
        finally:
            session.close()


class Round:
    """One seed."""

    def __init__(self, servers, seed, tally):
        self.seed, self.tally = seed, tally
        self.rng = random.Random(seed)
        self.databases = Databases(servers, f"round{seed}")
        self.statements = Statements(self.rng)
        # All statements so far.
        self.history = []

    def run(self, count):
        try:
            while len(self.history) < count:
                self.block(self.statements.block())
                self.compare_tables()
        except RoundEnds:
            pass
        finally:
            self.databases.close()

    def block(self, block):
        succeeded = None
        while True:
            try:
                statement = next(block) if succeeded is None else block.send(succeeded)
            except StopIteration:
                return
            succeeded = self.ask(statement)

    def ask(self, statement):
        """Runs a statement on both; whether PostgreSQL executed it."""
        self.history.append(statement)
        ours, theirs = self.databases.ask(statement)
        schema = self.statements.schema
        if theirs.sqlstate and statement.numbered in schema.tables:
            schema.tables[statement.numbered].is_uncertain = True
        self.tally.kinds[statement.kind, theirs.sqlstate or "done"] += 1
        if same(statement, ours, theirs):
            self.tally.equal += 1
        else:
            self.tally.note(self, statement, ours, theirs)
            if (
                statement.kind not in ("SELECT", "other session")
                or bool(ours.sqlstate) != bool(theirs.sqlstate)
                and self.in_block()
            ):
                raise RoundEnds
        if not theirs.sqlstate and statement.apply:
            statement.apply()
        return not theirs.sqlstate

    def in_block(self):
        return any(session.connection.info.transaction_status != 0 for session in self.databases.sessions[0])

    def compare_tables(self):
        """Compares the content of all tables, and tells the generator what it is."""
        if self.in_block():
            return
        for table in self.statements.schema.tables.values():
            statement = Statement(f"SELECT * FROM {table.sql}", "content")
            ours, theirs = self.databases.ask(statement)
            if not same(statement, ours, theirs):
                self.tally.note(self, statement, ours, theirs, self.history[-1])
                raise RoundEnds
            self.tally.contents += 1
            table.rows = [dict(zip(theirs.names, row)) for row in theirs.rows]


class Tally:
    """What was found."""

    def __init__(self, servers):
        self.servers = servers
        self.equal = self.different = self.contents = 0
        self.kinds, self.purposes, self.groups = (
            collections.Counter(),
            collections.Counter(),
            collections.Counter(),
        )

    def note(self, round_, statement, ours, theirs, cause=None):
        """Counts a difference, and shows it unless it is on purpose. The content of a table is judged by the
        statement before."""
        entry = on_purpose(cause or statement, ours, theirs)
        if entry:
            self.purposes[entry.name, entry.reason] += 1
            return
        self.different += 1
        group = f"{statement.kind}: {what_differs(statement, ours, theirs)}: {ours.outline()}; PostgreSQL {theirs.outline()}"
        self.groups[group] += 1
        if self.different > SHOWN_MAX or self.groups[group] > SHOWN_OF_A_GROUP:
            return
        print(
            f"\nseed {round_.seed}, statement {len(round_.history)} ({statement.kind}):\n  {statement.script()}"
        )
        for name, answer in (("Marigram", ours), ("PostgreSQL", theirs)):
            print(f"  {name + ':':<12}{answer}")
        self.show_script(round_, statement)
        sys.stdout.flush()

    def show_script(self, round_, statement):
        history = round_.history if statement is round_.history[-1] else [*round_.history, statement]

        def try_again(statements):
            """The answers to the last of some statements on new databases."""
            databases = Databases(self.servers, "smaller")
            try:
                for statement in statements[:-1]:
                    databases.ask(statement)
                return databases.ask(statements[-1])
            finally:
                databases.close()

        # It takes longer than CI waits.
        if os.environ.get("MARIGRAM_POSTGRES_MINIMIZE", "0" if os.environ.get("CI") else "1") == "1":
            history = minimized(history, try_again)
        print("  to repeat it:")
        for each in history:
            print(f"    {f'/* session {each.session} */ ' if each.session else ''}{each.script()}")

    def total(self):
        return sum(self.kinds.values())

    def summary(self, first, last, took):
        done = sum(count for (_, state), count in self.kinds.items() if state == "done")
        print(
            f"\n{self.total()} statements, seeds {first} to {last}, in {took:.0f} s: {self.equal} equal, "
            f"{sum(self.purposes.values())} different on purpose, {self.different} different; "
            f"{self.contents} contents of tables equal; PostgreSQL executed {done / max(1, self.total()):.0%}"
        )
        for kind in sorted({kind for kind, _ in self.kinds}):
            states = {state: count for (name, state), count in self.kinds.most_common() if name == kind}
            print(f"  {kind}: {', '.join(f'{state} {count}' for state, count in states.items())}")
        for (name, reason), count in self.purposes.most_common():
            print(f"on purpose: {count} × {name}: {reason}")
        for group, count in self.groups.most_common():
            print(f"DIFFERENT: {count} × {group}")
        if done < 0.7 * self.total():
            print("PostgreSQL refused more than 30 % of the statements: the generator is not good")
            return 1
        return 1 if self.different else 0


def main():
    wanted = int(os.environ.get("MARIGRAM_POSTGRES_STATEMENTS") or (1000 if os.environ.get("CI") else 20000))
    seed = first = int(os.environ.get("MARIGRAM_POSTGRES_SEED", "1"))
    ours = Server(int(os.environ["MARIGRAM_PORT"]), os.environ.get("MARIGRAM_DATABASE", "main"))
    theirs = Server(int(os.environ["POSTGRES_PORT"]), "postgres")
    servers = [ours, theirs]
    tally, began = Tally(servers), time.monotonic()
    seconds = float(os.environ.get("MARIGRAM_POSTGRES_SECONDS") or (100 if os.environ.get("CI") else "inf"))
    while tally.total() < wanted and time.monotonic() - began < seconds:
        Round(servers, seed, tally).run(min(STATEMENTS_OF_A_ROUND, wanted - tally.total()))
        seed += 1
    return tally.summary(first, seed - 1, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
