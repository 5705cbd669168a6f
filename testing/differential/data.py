"""Random tables, created identically in both databases.

A row is identified by its series (dev, unit) and its time. No two rows of a table have the same
time, so every order by time is unambiguous. Marigram receives rows late, twice, and partly in
files; DuckDB receives only the final rows.
"""

import math

COLUMNS = ["a", "b", "c", "d", "s", "f", "t"]
MARIGRAM = (
    "CREATE TABLE {0} (time TIMESTAMP, dev STRING TAG, unit BIGINT TAG, a INT, b BIGINT, c DOUBLE, "
    "d FLOAT, s STRING, f BOOLEAN, t TIMESTAMP) WITH (page_size = '1KiB', partition = '1h')"
)
DUCKDB = (
    "CREATE TABLE {0} (time TIMESTAMP, dev VARCHAR, unit BIGINT, a INTEGER, b BIGINT, c DOUBLE, "
    "d FLOAT, s VARCHAR, f BOOLEAN, t TIMESTAMP)"
)
INT_EXTREMES = [-(2**31), 2**31 - 1, 2**31 - 2]
BIGINT_EXTREMES = [-(2**63), 2**63 - 1, 2**62, -(2**62) - 1]
SPECIAL_FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0]


def moment(second, micro):
    hour, minute, second = second // 3600, second // 60 % 60, second % 60
    return f"'2024-03-31 {hour:02}:{minute:02}:{second:02}.{micro:06}'"


def text(value, kind):
    """A value in the syntax of both."""
    if value is None:
        return "NULL"
    if kind in "cd":
        name = "DOUBLE" if kind == "c" else "FLOAT"
        # To DuckDB, "-0" is a decimal number, which has only one zero.
        if math.isnan(value) or math.isinf(value) or value == 0:
            return f"'{value}'::{name}"
        return f"({value!r})::{name}"
    if kind == "b":
        # The minimum cannot be written as a negated number everywhere.
        return f"'{value}'::BIGINT"
    if kind == "f":
        return "true" if value else "false"
    if kind in "st":
        return value if kind == "t" else f"'{value}'"
    return str(value)


class Table:
    """The rows of a table, and how both databases receive them."""

    def __init__(self, rng, name):
        self.rng = rng
        self.name = name
        # Extremes make many statements fail in the same way, which reveals little.
        self.extreme = rng.random() < 0.2
        self.special = rng.random() < 0.6
        self.nulls = rng.choice([0, 0.1, 0.1, 0.5])
        self.rows = {}
        start = rng.randrange(0, 70000)
        for micro in range(rng.choice([0, 1, 5, 40, 40, 150, 400])):
            second = start + int(rng.random() ** 2 * 12000)
            dev = rng.choice(["d0", "d1", "d2", "d3", None])
            key = (dev, rng.choice([0, 1, 2, 7]), moment(second % 86400, micro))
            self.rows[key] = [self.value(column) for column in COLUMNS]
            if all(value is None for value in self.rows[key]):
                self.rows[key][0] = 1

    def value(self, column):
        rng = self.rng
        if rng.random() < self.nulls:
            return None
        if column == "a":
            if self.extreme and rng.random() < 0.05:
                return rng.choice(INT_EXTREMES)
            return rng.randrange(-20, 20)
        if column == "b":
            if self.extreme and rng.random() < 0.05:
                return rng.choice(BIGINT_EXTREMES)
            return rng.choice([rng.randrange(-5, 5), rng.randrange(-(10**9), 10**9)])
        if column in "cd":
            if self.special and rng.random() < 0.15:
                return rng.choice(SPECIAL_FLOATS)
            return rng.randrange(-80, 80) / 4
        if column == "s":
            return rng.choice(["", "x", "X", "ab", "Abc", "b_c", "10%", "ü", "zz top", "0"])
        if column == "f":
            return rng.random() < 0.5
        return moment(rng.randrange(0, 86400), rng.randrange(0, 3) * 500000)

    def inserts(self, rows):
        for first in range(0, len(rows), 100):
            lines = []
            for (dev, unit, time), values in rows[first : first + 100]:
                fields = [text(value, column) for column, value in zip(COLUMNS, values)]
                dev = "NULL" if dev is None else f"'{dev}'"
                lines.append(f"({time}, {dev}, {unit}, {', '.join(fields)})")
            yield f"INSERT INTO {self.name} VALUES {', '.join(lines)}"

    def for_duckdb(self):
        yield DUCKDB.format(self.name)
        yield from self.inserts(list(self.rows.items()))

    def for_marigram(self):
        yield MARIGRAM.format(self.name)
        rng = self.rng
        rows = list(self.rows.items())
        if rng.random() < 0.5:
            rng.shuffle(rows)
        while rows:
            count = rng.randrange(1, len(rows) + 1)
            part, rows = rows[:count], rows[count:]
            if rng.random() < 0.3:
                # First write other values, all of which are then overwritten.
                before = [
                    (key, [None if old is None else self.value(column) for column, old in zip(COLUMNS, values)])
                    for key, values in part
                ]
                keep = [row for row in before if any(value is not None for value in row[1])]
                yield from self.inserts(keep)
                if rng.random() < 0.5:
                    yield "FLUSH"
            yield from self.inserts(part)
            if rng.random() < 0.5:
                yield "FLUSH"
        if rng.random() < 0.2:
            yield f"COMPACT TABLE {self.name}"
