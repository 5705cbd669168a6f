"""Random queries over the tables of a schema."""

from values import ORDERED

# Types of which both databases have minimum and maximum.
EXTREMES = ["int", "numeric", "float", "text", "date", "time", "timestamp", "timestamptz", "interval"]
GROUPED = ["bool", "int", "numeric", "text", "date", "timestamp", "uuid", "bytea", "time"]


class Selects:
    """Makes queries; `query` returns SQL and whether its rows have one order."""

    def __init__(self, rng, schema, expressions):
        self.rng, self.schema, self.expressions = rng, schema, expressions
        self.number = 0

    def scope(self, table, alias):
        return [(f"{alias}.{column.sql}", column.family) for column in table.columns]

    def table(self):
        return self.rng.choice(list(self.schema.tables.values()))

    def query(self):
        rng = self.rng
        makers = [
            self.plain,
            self.plain,
            self.joined,
            self.joined,
            self.grouped,
            self.grouped,
            self.set_operation,
            self.window,
            self.derived,
            self.with_query,
        ]
        return rng.choice(makers)()

    # Parts.

    def where(self, scope, chance=0.7):
        """A WHERE clause, or nothing."""
        rng = self.rng
        if rng.random() > chance:
            return ""
        condition = self.expressions.condition(scope)
        if rng.random() < 0.25:
            condition = f"{condition} {rng.choice(['AND', 'OR'])} {self.subquery_condition(scope)}"
        return f" WHERE {condition}"

    def subquery_condition(self, scope):
        """A condition with a subquery, correlated or not."""
        rng, table = self.rng, self.table()
        self.number += 1
        alias = f"s{self.number}"
        inner = self.scope(table, alias)
        source = f"{table.sql} AS {alias}"
        pairs = [
            (mine, theirs)
            for mine, kind in scope
            for theirs, other in inner
            if kind == other and kind in ORDERED and kind != "bool"
        ]
        chance = rng.random()
        if not pairs or chance < 0.15:
            return f"EXISTS (SELECT 1 FROM {source}{self.where(inner, 0.8)})"
        mine, theirs = rng.choice(pairs)
        negated = rng.choice(["", "", "NOT "])
        if chance < 0.4:
            return f"{mine} {negated}IN (SELECT {theirs} FROM {source} WHERE {theirs} IS NOT NULL)"
        if chance < 0.7:
            return f"{negated}EXISTS (SELECT 1 FROM {source} WHERE {theirs} = {mine})"
        kind = dict(scope)[mine]
        function = rng.choice(["max", "min"]) if kind in EXTREMES else None
        if function:
            return f"{mine} >= (SELECT {function}({theirs}) FROM {source})"
        return f"{mine} = ANY (SELECT {theirs} FROM {source})"

    def ordered(self, sql, families):
        """The query with an ORDER BY of all its columns, and perhaps LIMIT and OFFSET; whether it has one."""
        rng = self.rng
        if any(family not in ORDERED for family in families) or rng.random() < 0.4:
            return sql, False
        places = list(range(1, len(families) + 1))
        rng.shuffle(places)
        order = ", ".join(
            f"{place}{rng.choice(['', ' ASC', ' DESC', ' DESC NULLS LAST', ' NULLS FIRST'])}"
            for place in places
        )
        sql += f" ORDER BY {order}"
        if rng.random() < 0.4:
            sql += f" LIMIT {rng.randint(0, 5)}"
            if rng.random() < 0.4:
                sql += f" OFFSET {rng.randint(0, 3)}"
        return sql, True

    def items(self, scope, count=None):
        """Expressions with their families."""
        rng, items, families = self.rng, [], []
        present = sorted({family for _, family in scope})
        for number in range(count or rng.randint(1, 4)):
            family = rng.choice(present)
            text = self.expressions.of(family, scope, rng.choice([0, 1, 1, 2]))
            if rng.random() < 0.3:
                text += f" AS x{number}"
            items.append(text)
            families.append(family)
        return items, families

    # Whole queries.

    def plain(self):
        rng, table = self.rng, self.table()
        scope = self.scope(table, "t")
        if rng.random() < 0.25:
            families = [column.family for column in table.columns]
            return self.ordered(f"SELECT * FROM {table.sql} AS t{self.where(scope)}", families)
        items, families = self.items(scope)
        distinct = ""
        if rng.random() < 0.2 and not {"json", "jsonb"} & set(families):
            distinct = "DISTINCT "
        if rng.random() < 0.1:
            other = self.table()
            items.append(f"(SELECT count(*) FROM {other.sql})")
            families.append("int")
        return self.ordered(
            f"SELECT {distinct}{', '.join(items)} FROM {table.sql} AS t{self.where(scope)}", families
        )

    def joins(self):
        """FROM with two or three tables, and its scope."""
        rng, first = self.rng, self.table()
        text, scope = f"{first.sql} AS t0", self.scope(first, "t0")
        for number in range(1, rng.choice([2, 2, 3])):
            table, alias = self.table(), f"t{number}"
            added = self.scope(table, alias)
            pairs = [
                (mine, theirs)
                for mine, kind in scope
                for theirs, other in added
                if kind == other and kind in GROUPED
            ]
            if not pairs or rng.random() < 0.05:
                text += f" CROSS JOIN {table.sql} AS {alias}"
            else:
                mine, theirs = rng.choice(pairs)
                condition = f"{mine} = {theirs}"
                kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN"])
                if kind != "FULL JOIN" and rng.random() < 0.2:
                    condition += f" AND {self.expressions.comparison(added, 0)}"
                text += f" {kind} {table.sql} AS {alias} ON {condition}"
            scope = scope + added
        return text, scope

    def joined(self):
        source, scope = self.joins()
        items, families = self.items(scope)
        return self.ordered(f"SELECT {', '.join(items)} FROM {source}{self.where(scope)}", families)

    def aggregate(self, scope):
        """An aggregate, and the family of its result."""
        rng = self.rng
        family = rng.choice([family for _, family in scope if family != "json"] or ["int"])
        text = self.expressions.of(family, scope, rng.choice([0, 0, 1]))
        choices = [("count(*)", "int"), (f"count({text})", "int")]
        if family != "jsonb":
            choices.append((f"count(DISTINCT {text})", "int"))
        if family in EXTREMES:
            choices += [(f"min({text})", family), (f"max({text})", family)]
        if family in ("int", "numeric", "float"):
            choices += [
                (f"sum({text})", "numeric"),
                (f"avg({text})", "numeric"),
                (f"sum({text}) FILTER (WHERE {self.expressions.comparison(scope, 0)})", "numeric"),
            ]
        if family == "bool":
            choices += [(f"bool_and({text})", "bool"), (f"bool_or({text})", "bool")]
        if family == "text":
            choices.append((f"string_agg({text}, ',' ORDER BY {text})", "text"))
        if family in ("int", "text"):
            choices.append((f"array_agg({text} ORDER BY {text})", "array"))
        return rng.choice(choices)

    def grouped(self):
        rng = self.rng
        if rng.random() < 0.6:
            table = self.table()
            source, scope = f"{table.sql} AS t", self.scope(table, "t")
        else:
            source, scope = self.joins()
        keys = [(sql, family) for sql, family in scope if family in GROUPED]
        keys = rng.sample(keys, min(len(keys), rng.choice([0, 1, 1, 2])))
        where = self.where(scope)
        with self.expressions.without_parameters():
            aggregates = [self.aggregate(scope) for _ in range(rng.randint(1, 3))]
            having = ""
            if keys and rng.random() < 0.25:
                having = f" HAVING count(*) {rng.choice(['>', '=', '<='])} {rng.choice([1, 2])}"
        items = [sql for sql, _ in keys] + [sql for sql, _ in aggregates]
        group = f" GROUP BY {', '.join(sql for sql, _ in keys)}" if keys else ""
        families = [family for _, family in keys + aggregates]
        # The last digits of sums of floats depend on the order of rows.
        if any(family in ("array", "numeric") for _, family in aggregates):
            families = ["array"]
        return self.ordered(f"SELECT {', '.join(items)} FROM {source}{where}{group}{having}", families)

    def set_operation(self):
        rng = self.rng
        one, other = self.table(), self.table()
        scopes = self.scope(one, "t"), self.scope(other, "t")
        shared = [
            (mine, theirs, kind)
            for mine, kind in scopes[0]
            for theirs, family in scopes[1]
            if kind == family and kind not in ("json", "jsonb")
        ]
        if not shared:
            return self.plain()
        chosen = [rng.choice(shared) for _ in range(rng.randint(1, 3))]
        operation = rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        parts = []
        for side, (table, scope) in enumerate(zip((one, other), scopes)):
            items = ", ".join(column[side] for column in chosen)
            parts.append(f"SELECT {items} FROM {table.sql} AS t{self.where(scope)}")
        return self.ordered(f" {operation} ".join(parts), [kind for _, _, kind in chosen])

    def window(self):
        rng, table = self.rng, self.table()
        scope = self.scope(table, "t")
        key = table.primary()
        places = [sql for sql, family in scope if family in ORDERED]
        if not places:
            return self.plain()
        partition = f"PARTITION BY {rng.choice(places)} " if rng.random() < 0.5 else ""
        choices = [
            f"rank() OVER ({partition}ORDER BY {rng.choice(places)})",
            f"dense_rank() OVER (ORDER BY {rng.choice(places)} DESC)",
            f"count(*) OVER ({partition.strip()})",
        ]
        numbers = [sql for sql, family in scope if family in ("int", "numeric")]
        if numbers:
            number = rng.choice(numbers)
            choices += [
                f"sum({number}) OVER ({partition}ORDER BY {rng.choice(places)})",
                f"max({number}) OVER ({partition.strip()})",
            ]
        if key:
            order = ", ".join(f"t.{table.column(name).sql}" for name in key.columns)
            value = rng.choice(places)
            choices += [
                f"row_number() OVER ({partition}ORDER BY {order})",
                f"lag({value}) OVER (ORDER BY {order})",
                f"lead({value}, 2) OVER ({partition}ORDER BY {order})",
                f"first_value({value}) OVER (ORDER BY {order} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                f"ntile(3) OVER (ORDER BY {order})",
            ]
        with self.expressions.without_parameters():
            items, families = self.items(scope, rng.choice([1, 2]))
        items.append(rng.choice(choices))
        return f"SELECT {', '.join(items)} FROM {table.sql} AS t{self.where(scope, 0.4)}", False

    def named_columns(self, table):
        """The columns of a subquery with names of their own, and the scope outside."""
        columns = self.rng.sample(table.columns, min(3, len(table.columns)))
        items = ", ".join(f"t.{column.sql} AS y{number}" for number, column in enumerate(columns))
        return items, [(f"q.y{number}", column.family) for number, column in enumerate(columns)]

    def derived(self):
        table = self.table()
        items, scope = self.named_columns(table)
        inner = f"SELECT {items} FROM {table.sql} AS t{self.where(self.scope(table, 't'))}"
        items, families = self.items(scope)
        return self.ordered(f"SELECT {', '.join(items)} FROM ({inner}) AS q{self.where(scope)}", families)

    def with_query(self):
        table = self.table()
        items, scope = self.named_columns(table)
        inner = f"SELECT {items} FROM {table.sql} AS t{self.where(self.scope(table, 't'))}"
        items, families = self.items(scope)
        return self.ordered(
            f"WITH q AS ({inner}) SELECT {', '.join(items)} FROM q{self.where(scope)}", families
        )
