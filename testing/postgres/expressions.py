"""Random expressions of a family of types, over the columns in scope."""

from values import ORDERED, TYPES, literal, parameter

# Stands for a parameter, with its number between two, until the statement is complete.
MARK = "\x01"
DOMAINS = {}
for kind in TYPES:
    DOMAINS.setdefault(kind.family, kind.domain)
COMPARED = [family for family in DOMAINS if family not in ("json",)]


class Expressions:
    """`scope` is a list of (SQL, family) of the columns that an expression may name."""

    def __init__(self, rng):
        self.rng = rng
        # The parameters of the current statement; None while it has literals alone.
        self.parameters = None

    def value(self, family, value, is_typed=True):
        """A value, as a literal or a parameter."""
        if self.parameters is not None and self.rng.random() < 0.7:
            given = parameter(family, value)
            if given is not None:
                self.parameters.append(given)
                return f"{MARK}{len(self.parameters) - 1}{MARK}"
        return literal(family, value, is_typed)

    def constant(self, family, is_typed=True):
        return self.value(family, self.rng.choice(DOMAINS[family]), is_typed)

    def column(self, family, scope):
        own = [sql for sql, kind in scope if kind == family]
        return self.rng.choice(own) if own else None

    def of(self, family, scope, depth=2):
        """An expression."""
        rng = self.rng
        column = self.column(family, scope)
        if depth <= 0 or rng.random() < 0.3:
            return column if column and rng.random() < 0.8 else self.constant(family)
        if rng.random() < 0.25:
            return self.general(family, scope, depth - 1)
        make = getattr(self, f"{family}_expression", None)
        return make(scope, depth - 1) if make else column or self.constant(family)

    def general(self, family, scope, depth):
        """An expression that all types have."""
        rng = self.rng
        one, other = self.of(family, scope, depth), self.of(family, scope, depth)
        choices = [
            f"CASE WHEN {self.condition(scope, depth)} THEN {one} ELSE {other} END",
            f"coalesce({one}, {literal(family, rng.choice(DOMAINS[family]), True)})",
            f"CASE WHEN {self.condition(scope, depth)} THEN {one} END",
        ]
        if family not in ("json", "jsonb", "bool"):
            choices.append(f"nullif({one}, {self.constant(family)})")
        if family in ("int", "numeric", "date", "timestamp"):
            choices.append(f"{rng.choice(['greatest', 'least'])}({one}, {other})")
        return rng.choice(choices)

    def int_expression(self, scope, depth):
        rng = self.rng
        one = self.of("int", scope, depth)
        small = rng.choice([1, 2, 3])
        choices = [
            f"({one} + {self.value('int', small)})",
            f"({one} - {small})",
            f"(2 * {one})",
            f"({one} % {small})",
            f"({one} / {small})",
            f"abs({one})",
            f"(- {one})",
            f"({one} + {self.of('int', scope, depth)})",
        ]
        if text := self.column("text", scope):
            choices += [f"length({text})", f"octet_length({text})", f"position('a' IN {text})"]
        if date := self.column("date", scope):
            choices += [f"({date} - DATE '2024-01-01')", f"extract(month FROM {date})::int"]
        if number := self.column("numeric", scope):
            choices += [f"CAST({number} AS integer)", f"round({number})::int"]
        return rng.choice(choices)

    def numeric_expression(self, scope, depth):
        one, other = self.of("numeric", scope, depth), self.of("int", scope, depth)
        choices = [
            f"({one} + 1)",
            f"({one} * 2)",
            f"({one} - {self.of('numeric', scope, depth)})",
            f"abs({one})",
            f"round({one}, 1)",
            f"CAST({other} AS numeric(12,2))",
            f"({one} / 4)",
        ]
        return self.rng.choice(choices)

    def float_expression(self, scope, depth):
        one = self.of("float", scope, depth)
        choices = [f"({one} + 0.5)", f"({one} * 2)", f"abs({one})", f"floor({one})", f"({one} / 4)"]
        if number := self.column("int", scope):
            choices.append(f"CAST({number} AS double precision)")
        return self.rng.choice(choices)

    def text_expression(self, scope, depth):
        rng = self.rng
        one, number = self.of("text", scope, depth), self.of("int", scope, 0)
        choices = [
            f"({one} || {self.of('text', scope, depth)})",
            f"upper({one})",
            f"lower({one})",
            f"substr({one}, 1, 2)",
            f"replace({one}, 'a', 'z')",
            f"trim({one})",
            f"left({one}, 2)",
            f"right({one}, 1)",
            f"lpad({one}, 4, 'x')",
            f"reverse({one})",
            f"concat({one}, '-', {number})",
            f"CAST({number} AS text)",
        ]
        for family in ("date", "uuid", "bool", "timestamp", "numeric", "time", "interval"):
            if column := self.column(family, scope):
                choices.append(f"CAST({column} AS text)")
        if column := self.column("jsonb", scope):
            choices.append(f"({column} ->> 'a')")
        return rng.choice(choices)

    def date_expression(self, scope, depth):
        one = self.of("date", scope, depth)
        choices = [f"({one} + 1)", f"({one} - 30)", f"CAST({self.of('timestamp', scope, depth)} AS date)"]
        return self.rng.choice(choices)

    def timestamp_expression(self, scope, depth):
        one = self.of("timestamp", scope, depth)
        choices = [
            f"({one} + INTERVAL '1 month')",
            f"({one} - INTERVAL '90 minutes')",
            f"date_trunc('month', {one})",
            f"({self.of('date', scope, depth)} + INTERVAL '1 hour')",
            f"({one} + {self.of('interval', scope, 0)})",
        ]
        return self.rng.choice(choices)

    def timestamptz_expression(self, scope, depth):
        one = self.of("timestamptz", scope, depth)
        return self.rng.choice([f"({one} + INTERVAL '1 day')", f"date_trunc('hour', {one})"])

    def time_expression(self, scope, depth):
        one = self.of("time", scope, depth)
        return self.rng.choice(
            [f"({one} + INTERVAL '1 hour')", f"CAST({self.of('timestamp', scope, depth)} AS time)"]
        )

    def interval_expression(self, scope, depth):
        one = self.of("interval", scope, depth)
        choices = [f"({one} + INTERVAL '1 day')", f"({one} * 2)", f"(- {one})"]
        if self.column("timestamp", scope):
            choices.append(f"({self.of('timestamp', scope, 0)} - {self.of('timestamp', scope, 0)})")
        return self.rng.choice(choices)

    def bytea_expression(self, scope, depth):
        one = self.of("bytea", scope, depth)
        return self.rng.choice([f"({one} || {self.of('bytea', scope, depth)})", f"substr({one}, 1, 1)"])

    def bool_expression(self, scope, depth):
        return f"({self.condition(scope, depth)})"

    def jsonb_expression(self, scope, depth):
        one = self.of("jsonb", scope, 0)
        return self.rng.choice([f"({one} -> 'b')", f"({one} -> 'a')", one])

    def comparison(self, scope, depth, families=None):
        """A condition on values of one family."""
        rng = self.rng
        present = [kind for _, kind in scope if kind in (families or COMPARED)]
        family = rng.choice(present) if present else "int"
        one = self.of(family, scope, depth)
        if family == "jsonb":
            choices = [f"{one} = {self.constant(family)}", f"{one} IS NULL", f"{one} ->> 'a' IS NOT NULL"]
            return rng.choice(choices)
        if family == "bool" and rng.random() < 0.5:
            return rng.choice([f"{one} IS TRUE", f"{one} IS NOT FALSE", one, f"NOT {one}"])
        operator = rng.choice(["=", "=", "<", "<=", ">", ">=", "<>"])
        other = self.of(family, scope, depth)
        listed = ", ".join(self.constant(family) for _ in range(rng.randint(1, 3)))
        choices = [
            f"{one} {operator} {other}",
            f"{one} {operator} {self.constant(family)}",
            f"{one} IS {rng.choice(['', 'NOT '])}NULL",
            f"{one} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {other}",
            f"{one} {rng.choice(['', 'NOT '])}IN ({listed})",
        ]
        if family in ORDERED and family != "bool":
            choices.append(f"{one} BETWEEN {self.constant(family)} AND {self.constant(family)}")
        if family == "text":
            choices.append(
                f"{one} {rng.choice(['LIKE', 'NOT LIKE', 'ILIKE'])} {rng.choice(['%a%', 'a%', '_', '%b']) !r}"
            )
        return rng.choice(choices)

    def condition(self, scope, depth=2):
        """A condition."""
        rng, chance = self.rng, self.rng.random()
        if depth > 0 and chance < 0.3:
            joined = rng.choice(["AND", "OR"])
            return f"({self.condition(scope, depth - 1)} {joined} {self.condition(scope, depth - 1)})"
        if depth > 0 and chance < 0.36:
            return f"NOT ({self.condition(scope, depth - 1)})"
        return self.comparison(scope, min(depth, 1))

    def begin(self, has_parameters):
        """Begins a statement."""
        self.parameters = [] if has_parameters else None

    def used(self, text):
        """The text with one mark a parameter, and the parameters that it has: not all expressions are used."""
        parts = text.split(MARK)
        return MARK.join(parts[::2]), [self.parameters[int(number)] for number in parts[1::2]]

    def without_parameters(self):
        """A context in which values are literals."""
        return Literals(self)


class Literals:
    """See `Expressions.without_parameters`."""

    def __init__(self, expressions):
        self.expressions = expressions

    def __enter__(self):
        self.before, self.expressions.parameters = self.expressions.parameters, None

    def __exit__(self, *_):
        self.expressions.parameters = self.before
