"""Random queries over the tables of `data`, in the syntax of both databases.

An expression is a pair of texts, since a few things are written differently: a whole quotient is `/`
to one and `//` to the other, whole numbers of 32 bits are written with their type, a bucket of
several days counts from another day.
"""

import collections

Query = collections.namedtuple("Query", "marigram duckdb in_order kind")


class Pair:
    """A text for Marigram and one for DuckDB."""

    def __init__(self, marigram, duckdb=None):
        self.m = marigram
        self.d = marigram if duckdb is None else duckdb

    def __format__(self, _):
        raise TypeError("use fill()")


def fill(template, *parts):
    """A template with pairs in place of its {}."""
    return Pair(
        template.format(*(part.m if isinstance(part, Pair) else part for part in parts)),
        template.format(*(part.d if isinstance(part, Pair) else part for part in parts)),
    )


def joined(parts, by=", "):
    return Pair(by.join(part.m for part in parts), by.join(part.d for part in parts))


class Queries:
    """Generates queries."""

    def __init__(self, rng):
        self.rng = rng

    def one(self, *of):
        return self.rng.choice(of)

    def chance(self, share):
        return self.rng.random() < share

    # Expressions, by type.

    def column(self, kind, table):
        names = {
            "int": ["a"],
            "big": ["b", "unit"],
            "float": ["c", "c", "d::DOUBLE"],
            "text": ["s", "dev"],
            "bool": ["f"],
            "time": ["time", "t"],
        }[kind]
        return Pair(f"{table}.{self.one(*names)}")

    def literal(self, kind):
        rng = self.rng
        if kind == "int":
            return Pair(f"({rng.randrange(-20, 20)})::INT")
        if kind == "big":
            return Pair(f"({self.one(0, 1, 2, 3, 7, -1, -5, 100, 1000003)})::BIGINT")
        if kind == "float":
            special = self.one("'NaN'", "'inf'", "'-inf'", "'0'", "'-0.0'")
            plain = f"({rng.randrange(-80, 80) / 4})"
            return Pair(f"{special if self.chance(0.15) else plain}::DOUBLE")
        if kind == "text":
            return Pair(self.one("'x'", "'X'", "'ab'", "''", "'d1'", "'d2'", "'ü'"))
        if kind == "bool":
            return Pair(self.one("true", "false"))
        second = rng.randrange(0, 86400)
        stamp = f"2024-03-31 {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return Pair(f"TIMESTAMP '{stamp}'")

    def expression(self, kind, table, depth=2):
        if depth == 0 or self.chance(0.3):
            if self.chance(0.25):
                return self.literal(kind)
            return self.column(kind, table)
        sub = lambda kind: self.expression(kind, table, depth - 1)
        if self.chance(0.15):
            return fill(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.condition(table, depth - 1),
                sub(kind),
                sub(kind),
            )
        if self.chance(0.1):
            return fill("coalesce({}, {})", sub(kind), sub(kind))
        if self.chance(0.05):
            return fill("nullif({}, {})", sub(kind), sub(kind))
        if self.chance(0.08) and kind != "bool":
            return fill(self.one("greatest", "least") + "({}, {})", sub(kind), sub(kind))
        return getattr(self, f"{kind}_expression")(sub)

    def int_expression(self, sub):
        choice = self.rng.randrange(7)
        if choice < 3:
            return fill("({} " + self.one("+", "-", "*") + " {})", sub("int"), sub("int"))
        if choice == 3:
            return fill("(- {})", sub("int"))
        if choice == 4:
            return fill("abs({})", sub("int"))
        if choice == 5:
            left, right = sub("int"), sub("int")
            return Pair(
                f"({left.m} / nullif({right.m}, 0::INT))",
                f"({left.d} // nullif({right.d}, 0::INT))",
            )
        return fill("CAST({} AS INT)", sub("big"))

    def big_expression(self, sub):
        choice = self.rng.randrange(9)
        if choice < 3:
            right = self.one("int", "big")
            return fill("({} " + self.one("+", "-", "*") + " {})", sub("big"), sub(right))
        if choice == 3:
            return fill("(- {})", sub("big"))
        if choice == 4:
            return fill("abs({})", sub("big"))
        if choice == 5:
            left, right = sub("big"), sub("big")
            return Pair(
                f"({left.m} / nullif({right.m}, 0::BIGINT))",
                f"({left.d} // nullif({right.d}, 0::BIGINT))",
            )
        if choice == 6:
            return fill("({} % nullif({}, 0::BIGINT))", sub("big"), sub("big"))
        if choice == 7:
            return fill("CAST(length({}) AS BIGINT)", sub("text"))
        part = self.one("hour", "minute", "day", "month", "year")
        return fill("CAST(extract(" + part + " FROM {}) AS BIGINT)", sub("time"))

    def float_expression(self, sub):
        choice = self.rng.randrange(7)
        if choice < 4:
            return fill("({} " + self.one("+", "-", "*", "/") + " {})", sub("float"), sub("float"))
        if choice == 4:
            return fill("(- {})", sub("float"))
        if choice == 5:
            return fill(self.one("abs", "floor", "ceil") + "({})", sub("float"))
        return fill("CAST({} AS DOUBLE)", sub(self.one("int", "big")))

    def text_expression(self, sub):
        choice = self.rng.randrange(6)
        if choice == 0:
            return fill("({} || {})", sub("text"), sub("text"))
        if choice == 1:
            return fill(self.one("upper", "lower", "trim", "reverse") + "({})", sub("text"))
        if choice == 2:
            return fill("substr({}, 1, 2)", sub("text"))
        if choice == 3:
            return fill("replace({}, 'b', 'yy')", sub("text"))
        return fill("CAST({} AS VARCHAR)", sub(self.one("int", "big", "bool")))

    def time_expression(self, sub):
        unit = self.one("minute", "hour", "day")
        return fill("date_trunc('" + unit + "', {})", sub("time"))

    def bool_expression(self, sub):
        kind = self.one("int", "big", "float", "text", "time", "bool")
        comparison = self.one("=", "<>", "<", "<=", ">", ">=")
        choice = self.rng.randrange(9)
        if choice < 4:
            return fill("({} " + comparison + " {})", sub(kind), sub(kind))
        if choice == 4:
            word = self.one("AND", "OR")
            return fill("({} " + word + " {})", sub("bool"), sub("bool"))
        if choice == 5:
            return fill("(NOT {})", sub("bool"))
        if choice == 6:
            return fill("({} IS " + self.one("", "NOT ") + "NULL)", sub(kind))
        if choice == 7:
            word = self.one("IS DISTINCT FROM", "IS NOT DISTINCT FROM")
            return fill("({} " + word + " {})", sub(kind), sub(kind))
        return fill("({} " + comparison + " {})", sub("int"), sub("float"))

    def condition(self, table, depth=1):
        kind = self.one("int", "big", "float", "text", "time")
        sub = lambda: self.expression(kind, table, depth)
        choice = self.rng.randrange(9)
        comparison = self.one("=", "<>", "<", "<=", ">", ">=")
        if choice < 3:
            return fill("({} " + comparison + " {})", self.column(kind, table), self.literal(kind))
        if choice == 3:
            # To DuckDB, no number is between another one and NaN.
            low, high = ("'NaN'::DOUBLE",) * 2
            while "NaN" in low + high:
                low, high = self.literal(kind).m, self.literal(kind).m
            word = self.one("", "NOT ")
            return fill("({} " + word + "BETWEEN {} AND {})", sub(), low, high)
        if choice == 4:
            values = joined([self.literal(kind) for _ in range(self.one(1, 2, 3, 6))])
            return fill("({} " + self.one("", "NOT ") + "IN ({}))", sub(), values)
        if choice == 5:
            pattern = self.one("'%b%'", "'_'", "'x%'", "'%'", "''", "'a_'", "'d1'")
            word = self.one("LIKE", "NOT LIKE")
            return fill("({} " + word + " {})", self.expression("text", table, depth), pattern)
        if choice == 6:
            return fill("({} IS " + self.one("", "NOT ") + "NULL)", sub())
        if choice == 7:
            return fill("(dev = {})".replace("dev", f"{table}.dev"), self.one("'d0'", "'d1'", "'d9'"))
        return self.expression("bool", table, depth)

    def where(self, table):
        count = self.one(0, 0, 1, 1, 2, 3)
        if count == 0:
            return Pair("")
        conditions = [self.condition(table, self.one(0, 1, 1, 2)) for _ in range(count)]
        return fill(" WHERE {}", joined(conditions, self.one(" AND ", " AND ", " OR ")))

    # Aggregates.

    def call(self, table):
        deep = self.one(0, 0, 0, 1)
        value = lambda kind: self.expression(kind, table, deep)
        number = self.one("int", "big", "float")
        any_kind = self.one("int", "big", "float", "text", "bool", "time")
        ordered = self.one("int", "big", "float", "text", "time")
        choice = self.rng.randrange(16)
        if choice == 0:
            call = Pair("count(*)")
        elif choice == 1:
            call = fill("count({})", value(any_kind))
        elif choice in (2, 3):
            x = value(number)
            # One database sums BIGINT as BIGINT, the other as a wider type.
            whole = number != "float"
            call = Pair(f"sum({x.m})", f"CAST(sum({x.d}) AS BIGINT)" if whole else f"sum({x.d})")
        elif choice == 4:
            call = fill("avg({})", value(number))
        elif choice in (5, 6):
            call = fill("min({})", value(ordered))
        elif choice in (7, 8):
            call = fill("max({})", value(ordered))
        elif choice == 9:
            call = fill(self.one("bool_and", "bool_or") + "({})", value("bool"))
        elif choice == 10:
            name = self.one("bit_and", "bit_or", "bit_xor")
            call = fill(name + "({})", value(self.one("int", "big")))
        elif choice == 11:
            call = fill("count(DISTINCT {})", value(any_kind))
        elif choice == 12:
            call = fill(
                self.one("stddev_samp", "stddev_pop", "var_samp", "var_pop") + "({})",
                Pair(f"{table}.a % 1000"),
            )
        elif choice == 13:
            call = fill("median(CAST({} AS DOUBLE))", value(self.one("int", "float")))
        elif choice == 14:
            x = self.column(any_kind, table)
            call = Pair(f"first({x.m}, {table}.time)", f"arg_min({x.d}, {table}.time)")
        else:
            x = self.column(any_kind, table)
            call = Pair(f"last({x.m}, {table}.time)", f"arg_max({x.d}, {table}.time)")
        if self.chance(0.15):
            condition = self.condition(table)
            m, d = f"FILTER (WHERE {condition.m})", f"FILTER (WHERE {condition.d})"
            if call.d.startswith("CAST(sum"):
                inner = call.d.removeprefix("CAST(").removesuffix(" AS BIGINT)")
                return Pair(f"{call.m} {m}", f"CAST({inner} {d} AS BIGINT)")
            return Pair(f"{call.m} {m}", f"{call.d} {d}")
        return call

    def key(self, table):
        choice = self.rng.randrange(9)
        if choice < 3:
            return Pair(f"{table}.{self.one('dev', 'dev', 'unit')}")
        if choice < 5:
            width = self.one("1 minute", "7 minutes", "1 hour", "30 seconds")
            bucket = f"time_bucket(INTERVAL '{width}', {table}.time)"
            return Pair(bucket)
        if choice == 5:
            unit = self.one("minute", "hour", "day")
            return fill("CAST(date_trunc('" + unit + "', {}) AS TIMESTAMP)", f"{table}.time")
        if choice == 6:
            return Pair(f"{table}.{self.one('a', 's', 'c', 'f', 'd')}")
        kind = self.one("int", "big", "float", "text", "bool")
        return self.expression(kind, table, 1)

    def grouped(self, table, source):
        keys = [self.key(table) for _ in range(self.one(0, 1, 1, 2))]
        calls = [self.call(table) for _ in range(self.one(1, 2, 3))]
        listed = joined(
            [fill("{} AS k" + str(at), key) for at, key in enumerate(keys)]
            + [fill("{} AS v" + str(at), call) for at, call in enumerate(calls)]
        )
        sql = fill("SELECT {} FROM {}{}", listed, source, self.where(table))
        if keys:
            numbers = ", ".join(str(at + 1) for at in range(len(keys)))
            sql = fill("{} GROUP BY {}", sql, numbers)
            if self.chance(0.2):
                sql = fill("{} HAVING {}", sql, self.one("count(*) > 1", f"max({table}.a) > 0"))
        return sql, len(keys)

    def order(self, count):
        """An order by the first columns."""
        ways = ["NULLS FIRST", "NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"]
        return ", ".join(f"{at + 1} {self.one(*ways)}" for at in range(count))

    # Queries.

    def query(self):
        kind = self.one(
            "rows", "rows", "grouped", "grouped", "grouped", "distinct", "join", "window",
            "subquery", "set", "with", "newest",
        )
        sql, ordered = getattr(self, f"{kind}_query")()
        in_order = bool(ordered)
        if in_order:
            sql = fill("{} ORDER BY {}", sql, ordered)
            if self.chance(0.3):
                sql = fill("{} LIMIT {}", sql, str(self.one(1, 3, 10)))
                if self.chance(0.3):
                    sql = fill("{} OFFSET {}", sql, str(self.one(1, 4)))
        return Query(sql.m, sql.d, in_order, kind)

    def rows_query(self):
        kinds = ["int", "big", "float", "text", "bool", "time"]
        listed = [self.expression(self.one(*kinds), "r") for _ in range(self.one(1, 2, 3))]
        listed = [Pair("r.time AS at")] + [
            fill("{} AS v" + str(at), value) for at, value in enumerate(listed)
        ]
        sql = fill("SELECT {} FROM r{}", joined(listed), self.where("r"))
        # No two rows have the same time.
        order = self.one("", self.order(1), "2 NULLS LAST, 1", "2 DESC NULLS FIRST, 1 DESC")
        return sql, order

    def grouped_query(self):
        sql, keys = self.grouped("r", Pair("r"))
        return sql, self.order(keys) if keys and self.chance(0.5) else ""

    def distinct_query(self):
        if self.chance(0.3):
            key = self.one("dev", "unit")
            sql = Pair(f"SELECT DISTINCT ON ({key}) {key}, time, a, c, s FROM r{{}}")
            sql = fill(sql.m, self.where("r"))
            return sql, f"1 NULLS LAST, 2 {self.one('', 'DESC')}"
        kinds = ["int", "float", "text", "bool"]
        listed = [self.expression(self.one(*kinds), "r", 1) for _ in range(self.one(1, 1, 2))]
        sql = fill("SELECT DISTINCT {} FROM r{}", joined(listed), self.where("r"))
        return sql, self.order(len(listed)) if self.chance(0.5) else ""

    def newest_query(self):
        sql = fill("SELECT r.time, r.dev, r.unit, r.b, r.c FROM r{}", self.where("r"))
        return sql, f"1 {self.one('', 'DESC')}"

    def match(self):
        on = self.one(
            "r.dev = q.dev", "r.unit = q.unit", "r.dev = q.dev AND r.unit = q.unit", "r.a = q.a",
            "r.c = q.c", "r.d = q.d", "r.s = q.s AND r.a > q.a", "r.b = q.a", "r.c = q.a",
            "r.a = q.a AND r.c <= q.c", "r.c < q.c AND r.dev = q.dev",
        )
        return on

    def join_query(self):
        word = self.one("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        source = Pair(f"r {word} q ON {self.match()}")
        if self.chance(0.5):
            sql, keys = self.grouped(self.one("r", "q"), source)
            return sql, self.order(keys) if keys and self.chance(0.5) else ""
        listed = [self.expression(self.one("int", "float", "text"), table, 1) for table in "rq"]
        sql = fill("SELECT r.time, q.time, {} FROM {}{}", joined(listed), source, self.where("r"))
        return sql, ""

    def window_query(self):
        over = lambda frame: Pair(
            f"({self.one('', 'PARTITION BY r.dev ', 'PARTITION BY r.c ', 'PARTITION BY r.unit ')}"
            f"ORDER BY r.time{self.one('', ' DESC')}{frame})"
        )
        frames = [
            "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ]
        calls = []
        for at in range(self.one(1, 2)):
            choice = self.rng.randrange(5)
            if choice == 0:
                call = Pair(self.one("row_number()", "rank()", "dense_rank()", "ntile(3)"))
                column = self.one("r.a", "r.c", "r.s", "r.d")
                order = self.one("NULLS FIRST", "DESC NULLS LAST")
                if call.m in ("row_number()", "ntile(3)"):
                    order += ", r.time"
                call = fill("{} OVER (ORDER BY {} {})", call, column, order)
            elif choice == 1:
                name = self.one("lag", "lead")
                column = self.one("r.a", "r.b", "r.c", "r.s")
                call = fill(name + "({}, 1) OVER {}", column, over(""))
            elif choice == 2:
                name = self.one("first_value", "last_value")
                call = fill(name + "({}) OVER {}", self.one("r.a", "r.c"), over(self.one(*frames)))
            else:
                name = self.one("sum", "min", "max", "count", "avg")
                # A value that leaves a running sum of floats leaves a rounding error, or NaN.
                columns = ["r.a", "r.b"] if name in ("sum", "avg") else ["r.a", "r.b", "r.c", "r.d"]
                column, window = self.one(*columns), over(self.one(*frames))
                call = fill(name + "({}) OVER {}", column, window)
                if name == "sum":
                    call = Pair(call.m, f"CAST({call.d} AS BIGINT)")
            calls.append(fill("{} AS w" + str(at), call))
        sql = fill("SELECT r.time, {} FROM r{}", joined(calls), self.where("r"))
        return sql, self.one("", "1")

    def subquery_query(self):
        choice = self.rng.randrange(5)
        where = self.where("q")
        if choice == 0:
            call = self.call("q")
            sql = fill("SELECT r.time, (SELECT {} FROM q{}) AS v FROM r{}", call, where, self.where("r"))
        elif choice == 1:
            column = self.one("a", "c", "s", "dev", "d", "b")
            word = self.one("IN", "NOT IN")
            sql = fill(
                "SELECT r.time, r.a FROM r WHERE r." + column + " " + word + " (SELECT q." + column
                + " FROM q{})",
                where,
            )
        elif choice == 2:
            word = self.one("EXISTS", "NOT EXISTS")
            condition = self.condition("q")
            sql = fill(
                "SELECT r.time, r.dev FROM r WHERE " + word + " (SELECT 1 FROM q WHERE "
                + self.match() + " AND {})",
                condition,
            )
        elif choice == 3:
            inner, _ = self.grouped("r", Pair("r"))
            sql = fill("SELECT count(*), min(v0), max(v0) FROM ({}) AS s", inner)
        else:
            compare = self.one("<", ">=", "=")
            name = self.one("min", "max", "avg")
            sql = Pair(
                f"SELECT r.time, r.c FROM r WHERE r.c {compare} (SELECT {name}(q.c) FROM q "
                "WHERE q.dev = r.dev)"
            )
        return sql, ""

    def set_query(self):
        kinds = [self.one("int", "float", "text", "bool", "time") for _ in range(self.one(1, 1, 2))]
        side = lambda table: fill(
            "SELECT {} FROM " + table + "{}",
            joined(
                [fill("{} AS v" + str(at), self.expression(kind, table, 1)) for at, kind in enumerate(kinds)]
            ),
            self.where(table),
        )
        word = self.one("UNION", "UNION ALL", "INTERSECT", "EXCEPT")
        sql = fill("{} " + word + " {}", side("r"), side("q"))
        return sql, self.order(len(kinds)) if word != "UNION ALL" and self.chance(0.5) else ""

    def with_query(self):
        inner, _ = self.grouped("r", Pair("r"))
        # Intermediate roundings rule out a comparison for equality.
        while any(name in inner.m for name in ("avg(", "stddev", "var_")):
            inner, _ = self.grouped("r", Pair("r"))
        sql = fill("WITH s AS ({}) SELECT x.v0, count(*) FROM s AS x JOIN s AS y ON x.v0 = y.v0 GROUP BY 1", inner)
        if self.chance(0.5):
            sql = fill("WITH s AS ({}) SELECT v0, count(*) FROM s GROUP BY 1", inner)
        return sql, ""
