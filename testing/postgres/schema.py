"""Reference tables as the generator knows them."""

import copy
import re
from dataclasses import dataclass, field

from values import Type


def name_of(name):
    """A name as SQL."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name != "order" else f'"{name}"'


def names_of(names):
    return ", ".join(map(name_of, names))


@dataclass
class Column:
    name: str
    kind: Type
    is_nullable: bool = True
    default: str | None = None
    # "serial", "always", "default"
    identity: str | None = None
    # The constraints that are written beside it.
    suffix: str = ""

    @property
    def family(self):
        return self.kind.family

    @property
    def sql(self):
        return name_of(self.name)

    @property
    def is_required(self):
        return not self.is_nullable and self.default is None and self.identity is None

    def definition(self):
        if self.identity == "serial":
            kind = {"smallint": "smallserial", "integer": "serial", "bigint": "bigserial"}[self.kind.name]
        else:
            kind = self.kind.name
        text = f"{self.sql} {kind}"
        if self.identity in ("always", "default"):
            text += f" GENERATED {'ALWAYS' if self.identity == 'always' else 'BY DEFAULT'} AS IDENTITY"
        elif self.default is not None:
            text += f" DEFAULT {self.default}"
        if not self.is_nullable and self.identity is None and " PRIMARY KEY" not in self.suffix:
            text += " NOT NULL"
        return text + self.suffix


@dataclass
class Key:
    name: str
    columns: list
    is_primary: bool = False
    is_constraint: bool = True


@dataclass
class Foreign:
    name: str
    columns: list
    parent: str
    parent_columns: list


@dataclass
class Check:
    name: str
    columns: list


@dataclass
class Table:
    name: str
    columns: list = field(default_factory=list)
    keys: list = field(default_factory=list)
    foreigns: list = field(default_factory=list)
    checks: list = field(default_factory=list)
    # Constraints that are written after the columns.
    parts: list = field(default_factory=list)
    # Whether the next number of an identity is unknown: a failed INSERT may draw numbers or not.
    is_uncertain: bool = False
    # What was last read of it: one dictionary a row.
    rows: list = field(default_factory=list)

    @property
    def sql(self):
        return name_of(self.name)

    def column(self, name):
        return next((column for column in self.columns if column.name == name), None)

    def primary(self):
        return next((key for key in self.keys if key.is_primary), None)

    def key_columns(self):
        return {name for key in self.keys for name in key.columns}

    def seen(self, name):
        """The values that a column had when the table was last read."""
        return [row[name] for row in self.rows if row.get(name) is not None]

    def definition(self):
        parts = [column.definition() for column in self.columns] + self.parts
        return f"CREATE TABLE {self.sql} ({', '.join(parts)})"


class Schema:
    """All tables of a database."""

    def __init__(self):
        self.tables = {}

    def copy(self):
        return copy.deepcopy(self)

    def restore(self, other):
        """Goes back to a copy. Numbers that were drawn stay so, and what is uncertain."""
        uncertain = {table.name for table in self.tables.values() if table.is_uncertain}
        self.tables = copy.deepcopy(other.tables)
        for table in self.tables.values():
            table.is_uncertain |= table.name in uncertain

    def references(self, name):
        """The foreign keys to a table, with the tables that have them."""
        return [
            (table, key) for table in self.tables.values() for key in table.foreigns if key.parent == name
        ]

    def children(self, name):
        return [table for table, _ in self.references(name)]
