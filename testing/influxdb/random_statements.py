"""Random statements of InfluxQL, of every clause, over the rows of random_data.py."""


class RandomStatements:
    """Statements, one after the other."""

    def __init__(self, chance):
        self.chance = chance
        self.targets = 0

    def pick(self, *choices):
        return self.chance.choice(choices)

    def maybe(self, share, text):
        return text if self.chance.random() < share else ""

    def number(self):
        return self.pick("v", "v", "i", "i", "used", "nothing")

    def any_field(self):
        return self.pick("v", "i", "s", "b", "used")

    def comparison(self):
        return self.pick(
            f"host = '{self.pick('a', 'b', '', 'q', 'd e', 'é')}'",
            f"host != '{self.pick('a', 'c', '')}'",
            f"host =~ /{self.pick('a|b', '^c', '.*', 'x', '(?i)^A$')}/",
            f"host !~ /{self.pick('a', '^b$', '.')}/",
            f"region = '{self.pick('eu', 'us', '')}'",
            f"v {self.pick('>', '<', '>=', '<=', '=', '!=')} {self.chance.randrange(-5, 45)}",
            f"i {self.pick('>', '<', '=', '!=')} {self.chance.randrange(-5, 45)}",
            f"i {self.pick('>', '<')} {self.chance.randrange(-5, 45)}.5",
            f"s = '{self.pick('x', 'y', '')}'",
            f"s != '{self.pick('x', 'zz')}'",
            f"s =~ /{self.pick('x|y', 'z', '^$')}/",
            f"b = {self.pick('true', 'false')}",
            f"v + i > {self.chance.randrange(-5, 60)}",
            f"v * 2 <= {self.chance.randrange(-5, 60)}",
            "nothing = 'x'",
            "nothing != 'x'",
        )

    def condition(self, depth=0):
        if depth < 2 and self.chance.random() < 0.35:
            op = self.pick("AND", "OR", "AND")
            return f"({self.condition(depth + 1)} {op} {self.condition(depth + 1)})"
        return self.comparison()

    def times(self):
        start = self.chance.randrange(0, 900)
        end = start + self.chance.randrange(1, 600)
        first = self.pick(f"{start}s", f"{start}000ms", f"{start * 10**9}", f"0 + {start}s")
        return f"time >= {first} AND time {self.pick('<', '<=')} {end}s"

    def where(self, needs_range=False):
        parts = []
        if needs_range or self.chance.random() < 0.5:
            parts.append(self.times())
        if self.chance.random() < 0.4:
            parts.append(self.condition())
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def source(self):
        return self.pick(
            *["cpu"] * 5, "mem", "cpu, mem", "/cpu|mem/", "none", '"odd name,x"', "long.cpu", "long./.*/"
        )

    def tags(self):
        return self.pick("host", "region", "host, region", "*", "/h.*/", "nothing")

    def tail(self, limits=True):
        text = self.maybe(0.25, f" ORDER BY time {self.pick('DESC', 'ASC')}")
        if limits and self.chance.random() < 0.3:
            text += f" LIMIT {self.chance.randrange(1, 5)}"
            text += self.maybe(0.4, f" OFFSET {self.chance.randrange(0, 4)}")
        return text

    def series(self, group):
        if not group or self.chance.random() > 0.15:
            return ""
        return f" SLIMIT {self.pick(1, 2)}{self.maybe(0.4, ' SOFFSET 1')}"

    def zone(self):
        return self.maybe(0.1, f" tz('{self.pick('Europe/Berlin', 'America/New_York', 'UTC')}')")

    def aggregate(self):
        return self.pick(
            f"count({self.any_field()})",
            f"sum({self.number()})",
            f"mean({self.number()})",
            f"min({self.number()})",
            f"max({self.number()})",
            f"first({self.any_field()})",
            f"last({self.any_field()})",
            f"median({self.number()})",
            f"spread({self.number()})",
            f"stddev({self.number()})",
            f"mode({self.pick('s', 'b')})",
            f"percentile({self.number()}, {self.pick(5, 50, 90, 99.9)})",
            f"count(distinct({self.any_field()}))",
        )

    def transform(self, inner):
        return self.pick(
            f"derivative({inner}, {self.pick('1s', '1m')})",
            f"derivative({inner})",
            f"non_negative_derivative({inner}, 10s)",
            f"difference({inner})",
            f"non_negative_difference({inner})",
            f"cumulative_sum({inner})",
            f"moving_average({inner}, {self.pick(2, 3)})",
            f"elapsed({inner}, 1s)",
        )

    def fill(self):
        kinds = ("none", "null", "0", "7", "1.5", "previous", "linear")
        return self.maybe(0.6, f" fill({self.pick(*kinds)})")

    def raw(self):
        columns = self.pick(
            "v",
            "v, i",
            "*",
            "*::field",
            "v, host",
            "host, region, s, i",
            "v + i, v / i, i % 3, v * 2 - 1",
            "i & 3, i | 1, i ^ 5",
            "b & true, b | false, i",
            "v::integer, i::float, s::float",
            "abs(v), pow(i, 2), floor(v), ceil(v), round(v), sqrt(v)",
            "ln(v), sin(v), atan2(v, i), exp(i)",
            "s, b",
            "nothing, v",
            "host",
            "/^[iv]$/",
            "v AS i, i AS v",
            "-v, (v - i) * 2",
            "kind, v",
            "kind::tag, kind::field, v",
            "v, *",
        )
        group = self.maybe(0.3, f" GROUP BY {self.tags()}")
        return (
            f"SELECT {columns} FROM {self.source()}{self.where()}{group}{self.tail()}"
            f"{self.series(group)}{self.zone()}"
        )

    def grouped(self):
        columns = ", ".join(self.aggregate() for _ in range(self.pick(1, 1, 2, 3)))
        if self.chance.random() < 0.15:
            right = self.pick("2", "sum(v)", "count(i)")
            columns = f"{self.aggregate()} {self.pick('+', '-', '*', '/')} {right}"
        if self.chance.random() < 0.1:
            columns = self.pick("count(*)", "mean(*)", "last(*)", "max(/^[iv]/)", "first(*::field)")
        by_time = self.chance.random() < 0.6
        groups = []
        if by_time:
            offset = self.maybe(0.3, f", {self.pick('10s', '-7s', '3m')}")
            groups.append(f"time({self.pick('1m', '100s', '5m', '37s')}{offset})")
        if self.chance.random() < 0.4:
            groups.append(self.tags())
        group = f" GROUP BY {', '.join(groups)}" if groups else ""
        fill = self.fill() if by_time else ""
        where = self.where(needs_range=by_time)
        return (
            f"SELECT {columns} FROM {self.source()}{where}{group}{fill}{self.tail()}"
            f"{self.series(group)}{self.zone()}"
        )

    def selector(self):
        name = self.pick("first", "last", "min", "max")
        columns = f"{name}({self.pick('v', 'i')}), {self.pick('host', 's', 'i, region', 'b, v')}"
        by_time = self.chance.random() < 0.4
        groups = [f"time({self.pick('2m', '5m')})"] if by_time else []
        if self.chance.random() < 0.3:
            groups.append(self.tags())
        group = f" GROUP BY {', '.join(groups)}" if groups else ""
        return f"SELECT {columns} FROM cpu{self.where(by_time)}{group}{self.tail()}"

    def transformed(self):
        if self.chance.random() < 0.5:
            columns = self.transform(self.pick("v", "i"))
            group = self.maybe(0.4, f" GROUP BY {self.tags()}")
            return f"SELECT {columns} FROM cpu{self.where()}{group}{self.tail()}"
        inner = f"{self.pick('mean', 'sum', 'max', 'last', 'count')}({self.pick('v', 'i')})"
        columns = self.transform(inner)
        group = f" GROUP BY time({self.pick('1m', '2m')}){self.maybe(0.3, ', host')}"
        return f"SELECT {columns} FROM cpu{self.where(True)}{group}{self.fill()}{self.tail()}"

    def picked(self):
        columns = self.pick(
            f"top(v, {self.pick(1, 2, 5)})",
            f"bottom(i, {self.pick(1, 3)})",
            "top(v, host, 2)",
            "bottom(v, region, 2)",
            "top(v, host, region, 3)",
            "top(v, 2), s",
            "distinct(i)",
            "distinct(s)",
            "DISTINCT b",
            "integral(v)",
            "integral(i, 1m)",
        )
        by_time = self.chance.random() < 0.4
        group = f" GROUP BY time({self.pick('2m', '5m')})" if by_time else self.maybe(0.3, " GROUP BY host")
        return f"SELECT {columns} FROM cpu{self.where(by_time)}{group}{self.tail(False)}"

    def nested(self):
        inner_group = self.pick(
            "", " GROUP BY host", " GROUP BY host, region", " GROUP BY time(1m)", " GROUP BY time(2m), host"
        )
        inner = self.pick(
            "mean(v) AS m", "max(v) AS m", "sum(i) AS m", "count(v) AS m", "v AS m, i AS n", "last(i) AS m"
        )
        if "AS n" in inner:
            inner_group = self.pick("", " GROUP BY host")
        where = self.where("time" in inner_group)
        subquery = f"(SELECT {inner} FROM cpu{where}{inner_group})"
        if self.chance.random() < 0.1:
            subquery = f"(SELECT sum(m) AS m FROM {subquery})"
        outer = self.pick("m", "mean(m)", "max(m)", "sum(m)", "count(m)", "*", "m * 2", "m, host", "first(m)")
        group = self.pick("", "", " GROUP BY host") if "host" in inner_group else ""
        condition = self.maybe(0.2, f" WHERE m > {self.pick(1, 5, 20)}")
        return f"SELECT {outer} FROM {subquery}{condition}{group}{self.tail()}"

    def tag_comparison(self):
        return self.pick(
            f"host = '{self.pick('a', 'b', '', 'q')}'",
            f"host != '{self.pick('a', '')}'",
            f"host =~ /{self.pick('a|b', '.*', 'x')}/",
            f"region !~ /{self.pick('e', 'u')}/",
            f"region = '{self.pick('eu', '')}'",
        )

    def show(self):
        where = self.maybe(0.4, f" WHERE {self.tag_comparison()}")
        if where and self.chance.random() < 0.2:
            where += f" {self.pick('AND', 'OR')} {self.tag_comparison()}"
        source = self.maybe(0.4, f" FROM {self.pick('cpu', 'mem', '/c|m/', 'none')}")
        limit = self.maybe(0.2, f" LIMIT {self.pick(1, 2)}{self.maybe(0.5, ' OFFSET 1')}")
        key = self.pick("= host", "=~ /.*/", "IN (host, region)", "!= host", "!~ /h/", "= nothing")
        exact = self.pick("EXACT ", "EXACT ", "")
        which = self.pick("", " WITH MEASUREMENT =~ /c/", " WITH MEASUREMENT = mem")
        return self.pick(
            f"SHOW MEASUREMENTS{which}{where}{limit}",
            f"SHOW TAG KEYS{source}{where}{limit}",
            f"SHOW TAG VALUES{source} WITH KEY {key}{where}{limit}",
            f"SHOW FIELD KEYS{source}",
            f"SHOW SERIES{source}{where}{limit}",
            f"SHOW SERIES EXACT CARDINALITY{source}{where}",
            f"SHOW MEASUREMENT EXACT CARDINALITY{source}{where}",
            f"SHOW TAG KEY {exact}CARDINALITY{source}{where}",
            f"SHOW TAG VALUES {exact}CARDINALITY{source} WITH KEY {key}{where}",
            f"SHOW FIELD KEY {exact}CARDINALITY{source}",
            "SHOW RETENTION POLICIES",
        )

    def into(self):
        """Two statements: what is written, and what is then there."""
        self.targets += 1
        target = f"target{self.targets}"
        select = self.pick(
            "mean(v) AS m INTO {} FROM cpu GROUP BY host",
            "sum(i) AS m, count(v) AS n INTO {} FROM cpu WHERE time >= 0s AND time < 20m GROUP BY time(3m)",
            "v, s, b INTO {} FROM cpu GROUP BY *",
            "top(v, host, 2) INTO {} FROM cpu",
            "max(v) AS m INTO long.{} FROM mem",
            "i * 2 AS m INTO {} FROM mem WHERE i > 10",
        )
        policy = "long." if "long." in select else ""
        write = "SELECT " + select.format(target)
        read = f"SELECT * FROM {policy}{target} GROUP BY *"
        return [write, read, f"DROP MEASUREMENT {target}"]

    def refused(self):
        return self.pick(
            "SELECT sum(s) FROM cpu",
            "SELECT mean(v), host FROM cpu",
            "SELECT v FROM nowhere.autogen.cpu",
            "SELECT v FROM missing.cpu",
            "SELECT top(v, 3) FROM cpu LIMIT 2",
            "SELECT v FROM cpu GROUP BY time(1m)",
            "SELECT derivative(v) FROM cpu GROUP BY time(1m)",
            "SELECT s + 1 FROM cpu",
            "SELECT distinct(v), i FROM cpu",
            "SELECT percentile(v) FROM cpu",
            "SELECT count(2) FROM cpu",
            "SELECT v FRO cpu",
            "SELECT v FROM cpu WHERE time > 'x'",
            "SHOW TAG VALUES",
            "SELECT count(v) FROM cpu; SELECT foo(v) FROM cpu; SELECT v FROM cpu",
        )

    def statements(self):
        """The next statement, or several that belong together."""
        kinds = [self.raw] * 5 + [self.grouped] * 7 + [self.selector] * 2 + [self.transformed] * 3
        kinds += [self.picked] * 2 + [self.nested] * 3 + [self.show] * 2 + [self.into, self.refused]
        made = self.chance.choice(kinds)()
        return made if isinstance(made, list) else [made]
