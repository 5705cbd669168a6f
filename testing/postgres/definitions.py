"""Random statements that change tables: ALTER TABLE, CREATE INDEX, DROP TABLE, TRUNCATE."""

from dataclasses import dataclass, field

from schema import Check, Key, name_of, names_of
from values import BY_NAME, literal


@dataclass
class Definition:
    """A statement, and what it does to the schema if it succeeds."""

    text: str
    kind: str
    apply: object = None
    traits: set = field(default_factory=set)


class Definitions:
    """Makes the statements of one round."""

    def __init__(self, rng, schema, maker):
        self.rng, self.schema, self.maker = rng, schema, maker
        self.number = 0

    def definition(self):
        rng = self.rng
        table = rng.choice(list(self.schema.tables.values()))
        makers = [
            self.add_column,
            self.add_column,
            self.drop_column,
            self.rename_column,
            self.set_default,
            self.set_default,
            self.set_nullable,
            self.set_nullable,
            self.add_key,
            self.add_check,
            self.add_foreign_key,
            self.drop_constraint,
            self.create_index,
            self.create_index,
            self.truncate,
            self.truncate,
            self.rename_table,
            self.drop_or_create,
            self.change_type,
        ]
        return rng.choice(makers)(table)

    def next_name(self, prefix):
        self.number += 1
        return f"{prefix}{self.number}"

    def alter(self, table, change, apply=None, kind="ALTER TABLE"):
        return Definition(f"ALTER TABLE {table.sql} {change}", kind, apply)

    # Columns.

    def add_column(self, table):
        column = self.maker.column(self.next_name("n"))
        if self.rng.random() < 0.1:
            column = self.maker.identity(column.name)
        elif not column.is_nullable and column.default is None and self.rng.random() < 0.7:
            column.default = literal(column.family, column.kind.domain[0])
        if self.rng.random() < 0.1 and column.identity is None:
            condition, _ = self.maker.check([column])
            column.suffix = f" CHECK ({condition})"
        # The rows that exist are numbered in an order of each database's own.
        traits = {"numbering"} if column.identity else set()
        made = self.alter(
            table,
            f"ADD {self.rng.choice(['', 'COLUMN '])}{column.definition()}",
            lambda: table.columns.append(column),
        )
        if column.suffix:
            check = Check(f"{table.name}_{column.name}_check", [column.name])
            made.apply = lambda: (table.columns.append(column), table.checks.append(check))
        made.traits = traits
        return made

    def drop_column(self, table):
        if len(table.columns) < 3:
            return self.add_column(table)
        column = self.rng.choice(table.columns)
        in_key = column.name in table.key_columns()
        if in_key and self.rng.random() < 0.8:
            return self.add_column(table)
        cascades = self.rng.random() < 0.3

        def apply():
            gone = [key.name for key in table.keys if column.name in key.columns]
            table.columns = [other for other in table.columns if other.name != column.name]
            table.keys = [key for key in table.keys if column.name not in key.columns]
            table.foreigns = [key for key in table.foreigns if column.name not in key.columns]
            table.checks = [check for check in table.checks if column.name not in check.columns]
            if gone:
                self.drop_references(table.name, column.name)

        return self.alter(
            table,
            f"DROP COLUMN {self.rng.choice(['', 'IF EXISTS '])}{column.sql}{' CASCADE' if cascades else ''}",
            apply,
        )

    def drop_references(self, parent, column):
        """Forgets the foreign keys to a column that is gone."""
        for other in self.schema.tables.values():
            other.foreigns = [
                key for key in other.foreigns if key.parent != parent or column not in key.parent_columns
            ]

    def rename_column(self, table):
        column, name = self.rng.choice(table.columns), self.next_name("r")
        old = column.name

        def renamed(names):
            return [name if each == old else each for each in names]

        def apply():
            column.name = name
            for part in [*table.keys, *table.foreigns, *table.checks]:
                part.columns = renamed(part.columns)
            for other in self.schema.tables.values():
                for key in other.foreigns:
                    if key.parent == table.name:
                        key.parent_columns = renamed(key.parent_columns)
            for row in table.rows:
                if old in row:
                    row[name] = row.pop(old)

        return self.alter(table, f"RENAME COLUMN {column.sql} TO {name}", apply)

    def set_default(self, table):
        column = self.rng.choice(table.columns)
        if column.identity or self.rng.random() < 0.35:
            return self.alter(
                table, f"ALTER COLUMN {column.sql} DROP DEFAULT", lambda: self.forget_default(column)
            )
        default = self.maker.default(column)
        return self.alter(
            table, f"ALTER {column.sql} SET DEFAULT {default}", lambda: setattr(column, "default", default)
        )

    @staticmethod
    def forget_default(column):
        column.default = None
        # A SERIAL is a default in PostgreSQL.
        column.identity = None

    def set_nullable(self, table):
        column = self.rng.choice(table.columns)
        drops = self.rng.random() < 0.5
        change = f"ALTER COLUMN {column.sql} {'DROP' if drops else 'SET'} NOT NULL"
        return self.alter(table, change, lambda: setattr(column, "is_nullable", drops))

    def change_type(self, table):
        """A wider type."""
        wider = {
            "smallint": "integer",
            "integer": "bigint",
            "varchar(5)": "text",
            "numeric(5,0)": "numeric(8,2)",
            "real": "double precision",
        }
        columns = [column for column in table.columns if column.kind.name in wider and not column.identity]
        columns = [
            column
            for column in columns
            if column.name not in {name for key in table.foreigns for name in key.columns}
        ]
        if not columns:
            return self.set_default(table)
        column = self.rng.choice(columns)
        kind = BY_NAME[wider[column.kind.name]]
        return self.alter(
            table, f"ALTER COLUMN {column.sql} TYPE {kind.name}", lambda: setattr(column, "kind", kind)
        )

    # Constraints.

    def add_key(self, table):
        rng = self.rng
        columns = [column for column in table.columns if column.kind.is_key]
        if not columns:
            return self.add_check(table)
        names = [column.name for column in rng.sample(columns, min(len(columns), rng.choice([1, 2, 2])))]
        is_primary = table.primary() is None and rng.random() < 0.5
        key = Key(self.next_name(f"{table.name}_key"), names, is_primary)
        kind = "PRIMARY KEY" if is_primary else "UNIQUE"

        def apply():
            table.keys.append(key)
            if is_primary:
                for name in names:
                    table.column(name).is_nullable = False

        return self.alter(table, f"ADD CONSTRAINT {key.name} {kind} ({names_of(names)})", apply)

    def add_check(self, table):
        condition, columns = self.maker.check(table.columns)
        check = Check(self.next_name(f"{table.name}_check"), columns)
        return self.alter(
            table, f"ADD CONSTRAINT {check.name} CHECK ({condition})", lambda: table.checks.append(check)
        )

    def add_foreign_key(self, table):
        rng = self.rng
        pairs = []
        for parent in self.schema.tables.values():
            for key in parent.keys:
                kinds = [parent.column(name).kind for name in key.columns]
                if len(kinds) == 1:
                    pairs += [(parent, key, column) for column in table.columns if column.kind == kinds[0]]
        if not pairs:
            return self.add_check(table)
        parent, key, column = rng.choice(pairs)
        text, foreign = self.maker.foreign_key(table, [column.name], parent, key)
        foreign.name = self.next_name(f"{table.name}_fkey")
        change = f"ADD CONSTRAINT {foreign.name} FOREIGN KEY ({column.sql}) {text}"
        return self.alter(table, change, lambda: table.foreigns.append(foreign))

    def drop_constraint(self, table):
        parts = [*[key for key in table.keys if key.is_constraint], *table.foreigns, *table.checks]
        if not parts or self.rng.random() < 0.05:
            return self.alter(table, f"DROP CONSTRAINT {self.rng.choice(['', 'IF EXISTS '])}nothing")
        part = self.rng.choice(parts)
        cascades = isinstance(part, Key) and self.rng.random() < 0.3

        def apply():
            for parts in (table.keys, table.foreigns, table.checks):
                parts[:] = [other for other in parts if other.name != part.name]
            if isinstance(part, Key):
                for other in self.schema.tables.values():
                    same = set(part.columns)
                    other.foreigns = [
                        key
                        for key in other.foreigns
                        if key.parent != table.name or set(key.parent_columns) != same
                    ]

        return self.alter(
            table, f"DROP CONSTRAINT {name_of(part.name)}{' CASCADE' if cascades else ''}", apply
        )

    def create_index(self, table):
        rng = self.rng
        if rng.random() < 0.15:
            indexes = [key for key in table.keys if not key.is_constraint]
            if indexes:
                index = rng.choice(indexes)
                return Definition(f"DROP INDEX {index.name}", "DROP INDEX", lambda: table.keys.remove(index))
        is_unique = rng.random() < 0.5
        columns = [column for column in table.columns if column.kind.is_key]
        if not columns:
            return self.add_check(table)
        names = [column.name for column in rng.sample(columns, min(len(columns), rng.choice([1, 1, 2])))]
        name = self.next_name(f"{table.name}_index")
        apply = None
        if is_unique:
            apply = lambda: table.keys.append(Key(name, names, False, False))
        return Definition(
            f"CREATE {'UNIQUE ' if is_unique else ''}INDEX {name} ON {table.sql} ({names_of(names)})",
            "CREATE INDEX",
            apply,
        )

    # Tables.

    def truncate(self, table):
        rng = self.rng
        names = {table.name}
        children = {child.name for child in self.schema.children(table.name)} - names
        if children and rng.random() < 0.3:
            cascade = " CASCADE"
            waiting = list(children)
            while waiting:
                name = waiting.pop()
                names.add(name)
                waiting += [child.name for child in self.schema.children(name) if child.name not in names]
        else:
            cascade = ""
            if rng.random() < 0.6:
                names |= children
        restarts = rng.random() < 0.6
        listed = sorted(names) if not cascade else [table.name]

        def apply():
            for name in names:
                self.schema.tables[name].rows = []
                self.schema.tables[name].is_uncertain &= not restarts

        option = " RESTART IDENTITY" if restarts else rng.choice(["", " CONTINUE IDENTITY"])
        return Definition(
            f"TRUNCATE {rng.choice(['', 'TABLE '])}{', '.join(map(name_of, listed))}{option}{cascade}",
            "TRUNCATE",
            apply,
        )

    def rename_table(self, table):
        name = self.next_name("u")

        def apply():
            tables = self.schema.tables
            old = table.name
            items = [(name if key == old else key, value) for key, value in tables.items()]
            tables.clear()
            tables.update(items)
            table.name = name
            for other in tables.values():
                for key in other.foreigns:
                    if key.parent == old:
                        key.parent = name

        return self.alter(table, f"RENAME TO {name}", apply)

    def drop_or_create(self, table):
        tables = self.schema.tables
        if len(tables) < 5 and self.rng.random() < 0.6:
            new = self.maker.table(self.next_name("v"))
            return Definition(new.definition(), "CREATE TABLE", lambda: tables.__setitem__(new.name, new))
        cascades = self.rng.random() < 0.3

        def apply():
            del tables[table.name]
            for other in tables.values():
                other.foreigns = [key for key in other.foreigns if key.parent != table.name]

        return Definition(
            f"DROP TABLE {self.rng.choice(['', 'IF EXISTS '])}{table.sql}{' CASCADE' if cascades else ''}",
            "DROP TABLE",
            apply,
        )
