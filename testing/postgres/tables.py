"""Random reference tables."""

from schema import Check, Column, Foreign, Key, Table, names_of
from values import BY_NAME, KEY_TYPES, TYPES, literal


class TableMaker:
    """Makes random tables."""

    NAMES = ["a", "b", "c", "d", "e", "f", "g", "Big", "order"]

    def __init__(self, rng, schema, expressions):
        self.rng, self.schema, self.expressions = rng, schema, expressions

    def default(self, column):
        """A default that is the same at any time."""
        rng, value = self.rng, self.rng.choice(column.kind.domain)
        if column.family == "int" and rng.random() < 0.3:
            return rng.choice(["1 + 2", "abs(-3)", "2 * 2", "length('abc')"])
        if column.family == "text" and rng.random() < 0.3:
            return rng.choice(["'a' || 'b'", "upper('a')", "lower('B')"])
        if column.family == "date" and rng.random() < 0.3:
            return "DATE '2024-01-30' + 1"
        return literal(column.family, value, is_typed=rng.random() < 0.3)

    def check(self, columns):
        """A condition that most values of the columns meet, and the columns that it names."""
        rng = self.rng
        column = rng.choice(columns)
        name, family = column.sql, column.family
        choices = [f"{name} IS NOT NULL OR {name} IS NULL"]
        if family in ("int", "numeric"):
            choices = [
                f"{name} > -2",
                f"{name} < 7",
                f"{name} BETWEEN -1 AND 1000",
                f"{name} <> 3",
                f"{name} >= 0 OR {name} IS NULL",
            ]
        elif family == "float":
            choices = [f"{name} < 5000", f"{name} > -1"]
        elif family == "text":
            choices = [
                f"length({name}) < 4",
                f"{name} <> 'B'",
                f"{name} IN ('a', 'b', 'ab', 'é', '')",
                f"{name} LIKE '%a%' OR length({name}) < 3",
            ]
        elif family == "date":
            choices = [f"{name} > DATE '1970-01-01'", f"extract(year FROM {name}) > 2000"]
        elif family == "bytea":
            choices = [f"length({name}) < 3"]
        others = [
            other
            for other in columns
            if other is not column and other.family == family and family in ("int", "text", "date")
        ]
        if others and rng.random() < 0.4:
            other = rng.choice(others)
            return f"{name} <> {other.sql}", [column.name, other.name]
        return rng.choice(choices), [column.name]

    def column(self, name, kind=None):
        rng = self.rng
        column = Column(name, kind or rng.choice(TYPES), rng.random() < 0.8)
        if rng.random() < 0.3:
            column.default = self.default(column)
        return column

    def identity(self, name):
        rng = self.rng
        kind = BY_NAME[rng.choice(["smallint", "integer", "integer", "bigint"])]
        return Column(name, kind, False, None, rng.choice(["serial", "serial", "always", "default"]))

    def table(self, name):
        rng = self.rng
        table, names = Table(name), list(self.NAMES)
        rng.shuffle(names)
        self.primary_key(table, names)
        for _ in range(rng.randint(2, 5)):
            table.columns.append(self.column(names.pop()))
        self.unique_keys(table)
        self.foreign_keys(table, names)
        if rng.random() < 0.5:
            self.checks(table)
        # Without anything relational, a table with a time would be one of series.
        is_plain = all(column.default is None and column.identity is None for column in table.columns)
        if is_plain and not table.checks and not table.foreigns:
            column = table.columns[-1]
            column.default = literal(column.family, column.kind.domain[0])
        return table

    def primary_key(self, table, names):
        rng, chance = self.rng, self.rng.random()
        if chance < 0.3:
            table.columns.append(self.identity("id"))
        elif chance < 0.7:
            kind = rng.choice([BY_NAME["integer"], BY_NAME["bigint"], rng.choice(KEY_TYPES)])
            table.columns.append(Column("id", kind, False))
        elif chance < 0.88:
            columns = [
                Column(names.pop(), rng.choice(KEY_TYPES), False) for _ in range(rng.choice([2, 2, 3]))
            ]
            table.columns += columns
            key = Key(f"{table.name}_pkey", [column.name for column in columns], True)
            if rng.random() < 0.3:
                key.name = f"{table.name}_whole"
                table.parts.append(f"CONSTRAINT {key.name} PRIMARY KEY ({names_of(key.columns)})")
            else:
                table.parts.append(f"PRIMARY KEY ({names_of(key.columns)})")
            table.keys.append(key)
            return
        else:
            return
        table.columns[0].suffix = " PRIMARY KEY"
        table.keys.append(Key(f"{table.name}_pkey", ["id"], True))

    def unique_keys(self, table):
        rng = self.rng
        free = [
            column
            for column in table.columns
            if column.kind.is_key and column.name not in table.key_columns()
        ]
        if free and rng.random() < 0.25:
            column = rng.choice(free)
            column.suffix += " UNIQUE"
            table.keys.append(Key(f"{table.name}_{column.name}_key", [column.name]))
        if len(free) > 1 and rng.random() < 0.2:
            names = [column.name for column in rng.sample(free, 2)]
            name = f"{table.name}_unique"
            table.parts.append(f"CONSTRAINT {name} UNIQUE ({names_of(names)})")
            table.keys.append(Key(name, names))

    def foreign_keys(self, table, names):
        rng = self.rng
        for _ in range(rng.choice([0, 1, 1, 2])):
            parents = [
                (other, key)
                for other in [*self.schema.tables.values(), table]
                for key in other.keys
                if key.is_constraint
            ]
            if not parents or not names:
                return
            parent, key = rng.choice(parents)
            if len(names) < len(key.columns):
                return
            own = []
            for parent_column in key.columns:
                kind = parent.column(parent_column).kind
                own.append(Column(names.pop(), kind, rng.random() < 0.8))
            table.columns += own
            text, foreign = self.foreign_key(table, [column.name for column in own], parent, key)
            if len(own) == 1 and rng.random() < 0.7:
                foreign.name = f"{table.name}_{own[0].name}_fkey"
                own[0].suffix += f" {text}"
            else:
                foreign.name = f"{table.name}_fk{len(table.foreigns)}"
                table.parts.append(
                    f"CONSTRAINT {foreign.name} FOREIGN KEY ({names_of(foreign.columns)}) {text}"
                )
            table.foreigns.append(foreign)

    def foreign_key(self, table, columns, parent, key):
        """REFERENCES … as SQL, and the foreign key without a name."""
        rng = self.rng
        text = f"REFERENCES {parent.sql}"
        if not key.is_primary or rng.random() < 0.6:
            text += f" ({names_of(key.columns)})"
        nullable = all(table.column(name).is_nullable for name in columns)
        actions = ["NO ACTION", "RESTRICT", "CASCADE", "CASCADE"] + ["SET NULL"] * (3 if nullable else 0)
        for event in ("DELETE", "UPDATE"):
            if rng.random() < 0.7:
                text += f" ON {event} {rng.choice(actions)}"
        return text, Foreign("", columns, parent.name, key.columns)

    def checks(self, table):
        rng = self.rng
        condition, columns = self.check(table.columns)
        if len(columns) == 1 and rng.random() < 0.5:
            table.column(columns[0]).suffix += f" CHECK ({condition})"
            table.checks.append(Check(f"{table.name}_{columns[0]}_check", columns))
        else:
            table.parts.append(f"CONSTRAINT {table.name}_sane CHECK ({condition})")
            table.checks.append(Check(f"{table.name}_sane", columns))
