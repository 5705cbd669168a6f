"""Random INSERT, UPDATE and DELETE of reference tables."""

import uuid
from decimal import Decimal

from schema import name_of, names_of
from statement import Statement
from values import literal

# Families whose values never run out.
UNUSED = ("int", "text", "uuid", "numeric")
# Types that hold the results of expressions.
CALCULATED = ("integer", "bigint", "text", "numeric(8,2)", "date", "timestamp")


class Changes:
    """Makes the statements of one round."""

    def __init__(self, rng, schema, expressions, selects):
        self.rng, self.schema, self.expressions, self.selects = rng, schema, expressions, selects
        # The last number that served as a new key.
        self.fresh = 200
        # The rows to which the foreign keys of the current row refer.
        self.parents = {}

    def change(self):
        """INSERT, UPDATE or DELETE."""
        rng = self.rng
        table = rng.choice(list(self.schema.tables.values()))
        chance = rng.random()
        if chance < 0.55:
            return self.insert(table)
        return self.update(table) if chance < 0.83 else self.delete(table)

    def begin(self):
        """Begins a statement that may have parameters."""
        self.expressions.begin(self.rng.random() < 0.35)

    def end(self, text, kind, **more):
        rng = self.rng
        text, parameters = self.expressions.used(text)
        return Statement(
            text,
            kind,
            parameters=parameters,
            form=rng.choice("ssbt"),
            is_prepared=rng.random() < 0.2,
            has_binary_answer=rng.random() < 0.25,
            **more,
        )

    def scope(self, table, alias=None):
        return self.selects.scope(table, alias or table.sql)

    def returning(self, table, alias=None):
        """A RETURNING clause, or nothing."""
        rng = self.rng
        if rng.random() < 0.55:
            return ""
        scope = self.scope(table, alias)
        choices = ["*", f"{alias or table.sql}.*", names_of(column.name for column in table.columns[:2])]
        items, _ = self.selects.items(scope, rng.randint(1, 3))
        return f" RETURNING {rng.choice([*choices, ', '.join(items), ', '.join(items)])}"

    # INSERT.

    def value(self, table, column):
        """A value for a column of a row."""
        rng, chance = self.rng, self.rng.random()
        foreign = next((key for key in table.foreigns if column.name in key.columns), None)
        if column.identity and (not table.is_uncertain or chance < 0.02):
            return "DEFAULT"
        if chance < 0.01 and column.kind.wrong:
            return column.kind.wrong
        if foreign and foreign.parent in self.schema.tables and chance < 0.85:
            given = self.parent_value(foreign, column)
            if given is not None:
                return self.expressions.value(column.family, given, is_typed=False)
            if column.is_nullable:
                return "NULL"
        if column.is_nullable and chance > 0.88 or chance > 0.993:
            return "NULL"
        if column.default is not None and chance > 0.8 or chance > 0.99:
            return "DEFAULT"
        is_key = column.name in table.key_columns() and not foreign
        if is_key and chance < 0.65 and column.family in UNUSED and column.kind.name != "char(3)":
            return self.expressions.value(column.family, self.unused(column), is_typed=False)
        if chance > 0.76 and column.kind.name in CALCULATED:
            with self.expressions.without_parameters():
                return self.expressions.of(column.family, [], 1)
        return self.expressions.constant(column.family, is_typed=rng.random() < 0.3)

    def parent_value(self, foreign, column):
        """A value with which a row refers to one that exists; all columns of a key get those of one row."""
        rows = self.schema.tables[foreign.parent].rows
        if foreign.name not in self.parents:
            self.parents[foreign.name] = self.rng.choice(rows) if rows else {}
        place = foreign.columns.index(column.name)
        return self.parents[foreign.name].get(foreign.parent_columns[place])

    def row(self, table, columns):
        self.parents = {}
        return f"({', '.join(self.value(table, column) for column in columns)})"

    def unused(self, column):
        """A value that probably no row has."""
        self.fresh += 1
        if column.family == "int":
            return self.fresh
        if column.family == "numeric":
            return Decimal(self.fresh)
        return f"k{self.fresh}" if column.family == "text" else uuid.UUID(int=self.fresh)

    def insert(self, table):
        rng = self.rng
        self.begin()
        chance = rng.random()
        if chance < 0.04:
            source, rows, columns = "DEFAULT VALUES", 1, ""
        elif chance < 0.16:
            columns, source = self.insert_select(table)
            rows = 2
        else:
            chosen = [column for column in table.columns if self.is_given(table, column)]
            if rng.random() < 0.3:
                rng.shuffle(chosen)
            columns = f" ({names_of(column.name for column in chosen)})"
            if not chosen or rng.random() < 0.15:
                chosen, columns = table.columns, ""
            rows = rng.choice([1, 1, 1, 1, 2, 2, 3, 4])
            # In several rows, literals and parameters of one column could have several types.
            if rows > 1:
                self.expressions.begin(False)
            tuples = [self.row(table, chosen) for _ in range(rows)]
            source = f"VALUES {', '.join(tuples)}"
        if table.is_uncertain and any(column.identity == "always" for column in table.columns):
            source = f"OVERRIDING SYSTEM VALUE {source}" if source != "DEFAULT VALUES" else source
        alias = "x" if rng.random() < 0.15 else None
        text = f"INSERT INTO {table.sql}{f' AS {alias}' if alias else ''}{columns} {source}"
        text += self.on_conflict(table, alias) + self.returning(table, alias)
        is_numbered = any(column.identity for column in table.columns)
        traits = frozenset({"multi"} if rows > 1 else ())
        return self.end(text, "INSERT", numbered=table.name if is_numbered else None, traits=traits)

    def is_given(self, table, column):
        if column.identity:
            return table.is_uncertain or self.rng.random() < 0.1
        return self.rng.random() < (0.985 if column.is_required else 0.75)

    def insert_select(self, table):
        """The columns and the query of an INSERT … SELECT, whose rows have one order."""
        rng, source = self.rng, self.selects.table()
        scope, items = self.scope(source, "u"), []
        chosen = [column for column in table.columns if self.is_given(table, column)] or table.columns
        for column in chosen:
            own = [sql for sql, family in scope if family == column.family]
            if own and rng.random() < 0.5 and column.family != "text":
                item = rng.choice(own)
                if column.family == "int" and column.name in table.key_columns():
                    self.fresh += 20
                    item = f"{item} + {self.fresh}"
            else:
                value = rng.choice(column.kind.domain)
                item = f"CAST({literal(column.family, value)} AS {column.kind.name})"
            items.append(
                item
                if column.is_nullable
                else f"coalesce({item}, CAST({literal(column.family, column.kind.domain[0])} AS {column.kind.name}))"
            )
        order = ", ".join(
            f"u.{column.sql}" for column in source.columns if column.family not in ("json", "jsonb")
        )
        limit = rng.choice(["", " LIMIT 1", " LIMIT 2"])
        if len(order) == 0:
            limit = ""
        query = f"SELECT {', '.join(items)} FROM {source.sql} AS u{self.selects.where(scope, 0.6)}"
        return f" ({names_of(column.name for column in chosen)})", query + (
            f" ORDER BY {order}{limit}" if order else ""
        )

    def on_conflict(self, table, alias):
        rng = self.rng
        if not table.keys or rng.random() < 0.6:
            return ""
        key = rng.choice(table.keys)
        target = f" ({names_of(key.columns)})"
        if key.is_constraint and rng.random() < 0.2:
            target = f" ON CONSTRAINT {name_of(key.name)}"
        if rng.random() < 0.35:
            return f" ON CONFLICT{'' if rng.random() < 0.5 else target} DO NOTHING"
        free = [
            column
            for column in table.columns
            if column.name not in table.key_columns() and not column.identity
        ] or table.columns
        scope = self.scope(table, alias)
        excluded = [(f"excluded.{column.sql}", column.family) for column in table.columns]
        changes = []
        for column in rng.sample(free, min(len(free), rng.choice([1, 1, 2]))):
            value = rng.choice(
                [
                    f"excluded.{column.sql}",
                    f"excluded.{column.sql}",
                    self.new_value(table, column, scope + excluded),
                    "DEFAULT",
                ]
            )
            if value == "DEFAULT" and column.is_required:
                value = f"excluded.{column.sql}"
            changes.append(f"{column.sql} = {value}")
        where = f" WHERE {self.expressions.condition(scope + excluded, 1)}" if rng.random() < 0.3 else ""
        return f" ON CONFLICT{target} DO UPDATE SET {', '.join(changes)}{where}"

    # UPDATE and DELETE.

    def new_value(self, table, column, scope):
        """What an UPDATE sets a column to."""
        rng, family = self.rng, column.family
        foreign = next((key for key in table.foreigns if column.name in key.columns), None)
        if foreign:
            return self.value(table, column)
        chance = rng.random()
        is_short = column.kind.name == "char(3)"
        if column.name in table.key_columns() and family in UNUSED and chance > 0.45 and not is_short:
            return self.expressions.value(family, self.unused(column))
        if chance < 0.1 and column.is_nullable:
            return "NULL"
        if chance < 0.15 and not column.is_required and not column.identity:
            return "DEFAULT"
        if chance < 0.22 and family in ("int", "numeric", "text", "date"):
            source = self.selects.table()
            own = [sql for sql, kind in self.scope(source, "v") if kind == family]
            if own and column.is_nullable and family != "text":
                return f"(SELECT {rng.choice(['max', 'min'])}({rng.choice(own)}) FROM {source.sql} AS v)"
        # Longer texts would not fit.
        if family == "text" and column.kind.name != "text" or column.kind.name == "numeric(5,0)":
            return self.expressions.constant(family, is_typed=False)
        value = self.expressions.of(family, scope, rng.choice([0, 0, 1, 2]))
        if family in ("int", "numeric", "float") and rng.random() < 0.1:
            value = self.expressions.of(rng.choice(["int", "numeric"]), scope, 1)
        return (
            value
            if column.is_nullable
            else f"coalesce({value}, {literal(family, column.kind.domain[0], True)})"
        )

    def referenced_rows(self, table):
        """The rows to which others refer, most of the time."""
        keys = [(child, key) for child, key in self.schema.references(table.name) if len(key.columns) == 1]
        if not keys or self.rng.random() < 0.3:
            return []
        child, key = self.rng.choice(keys)
        values = child.seen(key.columns[0])
        return [row for row in table.rows if row.get(key.parent_columns[0]) in values]

    def row_condition(self, table, alias):
        """A condition that probably one row meets; None without a key or rows."""
        key = table.primary()
        if not key or not table.rows:
            return None
        row = self.rng.choice(self.referenced_rows(table) or table.rows)
        if any(row.get(name) is None for name in key.columns):
            return None
        parts = []
        for name in key.columns:
            column = table.column(name)
            parts.append(f"{alias}.{column.sql} = {self.expressions.value(column.family, row[name])}")
        return " AND ".join(parts)

    def joined(self, table, name):
        """Another table of which at most one row belongs to a row of this one: its name, the condition and its
        columns."""
        pairs = []
        for other in self.schema.tables.values():
            key = other.primary()
            if key and len(key.columns) == 1:
                column = other.column(key.columns[0])
                pairs += [(other, column, own) for own in table.columns if own.kind == column.kind]
        if not pairs:
            return None
        other, column, own = self.rng.choice(pairs)
        return f"{other.sql} AS o", f"{name}.{own.sql} = o.{column.sql}", self.scope(other, "o")

    def update(self, table):
        rng = self.rng
        self.begin()
        alias = "x" if rng.random() < 0.15 else None
        name = alias or table.sql
        scope, keys = self.scope(table, name), table.key_columns()
        free = [column for column in table.columns if column.name not in keys and not column.identity]
        traits, where = {"multi"}, None
        one = self.row_condition(table, name)
        if one and (not free or rng.random() < (0.5 if self.schema.children(table.name) else 0.2)):
            # A key of one row. Of several rows, the result depends on their order: PostgreSQL checks each row.
            columns = [table.column(column) for column in sorted(keys)]
            columns = [column for column in columns if column.identity != "always"] or free
            where, traits = f" WHERE {one}", set()
        elif not free or rng.random() < 0.03:
            columns = [column for column in table.columns if column.identity != "always"]
            traits.add("keys")
        else:
            columns = free
            where = f" WHERE {one}" if one and rng.random() < 0.4 else None
        self.parents = {}
        columns = rng.sample(columns, min(len(columns), rng.choice([1, 1, 2, 3])))
        changes = [(column.sql, self.new_value(table, column, scope)) for column in columns]
        if len(changes) > 1 and rng.random() < 0.2:
            text = f"({', '.join(column for column, _ in changes)}) = ({', '.join(value for _, value in changes)})"
        else:
            text = ", ".join(f"{column} = {value}" for column, value in changes)
        other = self.joined(table, name) if not where and rng.random() < 0.12 else None
        if other:
            source, condition, more = other
            changes[0] = (columns[0].sql, self.new_value(table, columns[0], scope + more))
            text = f"{changes[0][0]} = {changes[0][1]}"
            where = f" FROM {source} WHERE {condition}"
        where = where or self.selects.where(scope, 0.85)
        text = f"UPDATE {table.sql}{f' AS {alias}' if alias else ''} SET {text}{where}{self.returning(table, alias)}"
        return self.end(text, "UPDATE", traits=frozenset(traits))

    def delete(self, table):
        rng = self.rng
        self.begin()
        alias = "x" if rng.random() < 0.15 else None
        name = alias or table.sql
        scope = self.scope(table, name)
        one = self.row_condition(table, name)
        if one and rng.random() < 0.6:
            where = f" WHERE {one}"
        elif (other := self.joined(table, name)) and rng.random() < 0.15:
            where = f" USING {other[0]} WHERE {other[1]} AND {self.expressions.condition(other[2], 0)}"
        else:
            where = self.selects.where(scope, 0.95)
        text = (
            f"DELETE FROM {table.sql}{f' AS {alias}' if alias else ''}{where}{self.returning(table, alias)}"
        )
        return self.end(text, "DELETE", traits=frozenset({"multi"}))
