"""Random statements about reference tables, in blocks.

A block is a Python generator: it yields statements, and is sent whether PostgreSQL executed each.
"""

from changes import Changes
from definitions import Definitions
from expressions import Expressions
from schema import Schema
from selects import Selects
from statement import Statement
from tables import TableMaker


class Statements:
    """Makes the statements of one round."""

    def __init__(self, rng):
        self.rng = rng
        self.schema = Schema()
        self.expressions = Expressions(rng)
        self.maker = TableMaker(rng, self.schema, self.expressions)
        self.selects = Selects(rng, self.schema, self.expressions)
        self.definitions = Definitions(rng, self.schema, self.maker)
        self.changes = Changes(rng, self.schema, self.expressions, self.selects)
        # New tables without rows.
        self.empty = []

    # Blocks.

    def first(self):
        """CREATE TABLE of all tables."""
        for number in range(self.rng.randint(1, 4)):
            yield self.create(f"t{number}")
            self.empty.append(f"t{number}")

    def fill(self, name):
        """The first rows of a table."""
        for _ in range(self.rng.randint(2, 4)):
            if name in self.schema.tables:
                yield self.changes.insert(self.schema.tables[name])

    def create(self, name):
        table = self.maker.table(name)
        return Statement(
            table.definition(), "CREATE TABLE", apply=lambda: self.schema.tables.__setitem__(name, table)
        )

    def block(self):
        """The next block."""
        if not self.schema.tables:
            return self.first()
        if self.empty:
            return self.fill(self.empty.pop(0))
        chance = self.rng.random()
        if chance < 0.62:
            return self.single()
        return self.transaction() if chance < 0.93 else self.two_sessions()

    def single(self):
        for _ in range(self.rng.randint(2, 8)):
            yield self.statement()

    def transaction(self):
        rng, schema = self.rng, self.schema
        begin = rng.choice(
            [
                "BEGIN",
                "BEGIN",
                "START TRANSACTION",
                "BEGIN ISOLATION LEVEL SERIALIZABLE",
                "BEGIN ISOLATION LEVEL REPEATABLE READ",
            ]
        )
        yield Statement(begin, "BEGIN")
        before, savepoints, has_failed = schema.copy(), [], False
        for _ in range(rng.randint(3, 12)):
            if has_failed and rng.random() < 0.75:
                if not savepoints:
                    break
                name, copy = rng.choice(savepoints)
                savepoints = savepoints[: savepoints.index((name, copy)) + 1]
                yield Statement(
                    f"ROLLBACK TO SAVEPOINT {name}", "SAVEPOINT", apply=lambda: schema.restore(copy)
                )
                has_failed = False
            elif rng.random() < 0.15 and not has_failed:
                name = rng.choice(["s", "s1", "s2"])
                yield Statement(f"SAVEPOINT {name}", "SAVEPOINT")
                # A name twice hides the older one; the newest is always rolled back to.
                savepoints = [pair for pair in savepoints if pair[0] != name] + [(name, schema.copy())]
            elif savepoints and rng.random() < 0.15 and not has_failed:
                name, copy = savepoints.pop()
                if rng.random() < 0.5:
                    yield Statement(f"RELEASE SAVEPOINT {name}", "SAVEPOINT")
                else:
                    savepoints.append((name, copy))
                    yield Statement(f"ROLLBACK TO {name}", "SAVEPOINT", apply=lambda: schema.restore(copy))
            else:
                has_failed = not (yield self.statement(in_block=True))
        end = rng.choice(["COMMIT", "COMMIT", "COMMIT", "END", "ROLLBACK", "ABORT"])
        yield Statement(end, "COMMIT")
        if has_failed or end in ("ROLLBACK", "ABORT"):
            schema.restore(before)

    def two_sessions(self):
        """What another session sees while this one changes rows."""
        rng, schema = self.rng, self.schema
        level = rng.choice(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", None])
        before, in_block = schema.copy(), rng.random() < 0.6
        if level:
            yield Statement(
                f"BEGIN ISOLATION LEVEL {level}{rng.choice(['', ' READ ONLY'])}", "BEGIN", session=1
            )
            yield self.look()
        if in_block:
            yield Statement("BEGIN", "BEGIN")
        has_failed = False
        for _ in range(rng.randint(1, 4)):
            has_failed |= not (yield self.changes.change())
            if rng.random() < 0.6:
                yield self.look()
        if in_block:
            end = rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])
            yield Statement(end, "COMMIT")
            if has_failed or end == "ROLLBACK":
                schema.restore(before)
        yield self.look()
        if level:
            yield Statement("COMMIT", "COMMIT", session=1)
            yield self.look()

    def look(self):
        table = self.rng.choice(list(self.schema.tables.values()))
        return Statement(f"SELECT * FROM {table.sql}", "other session", session=1)

    # Statements.

    def statement(self, in_block=False):
        if not self.schema.tables:
            return self.create("t0")
        chance = self.rng.random()
        if chance < 0.4:
            return self.select()
        if chance < (0.92 if in_block else 0.86):
            return self.changes.change()
        made = self.definitions.definition()
        return Statement(made.text, made.kind, apply=made.apply, traits=frozenset(made.traits))

    def select(self):
        self.changes.begin()
        text, is_ordered = self.selects.query()
        return self.changes.end(text, "SELECT", is_ordered=is_ordered)
