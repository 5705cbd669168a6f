"""A statement, and what the comparison has to know about it."""

from dataclasses import dataclass, field

from psycopg import sql

from expressions import MARK


@dataclass
class Statement:
    """A statement; parameters stand at its marks."""

    text: str
    kind: str
    parameters: list = field(default_factory=list)
    # How parameters are sent: s, b (binary) or t (text).
    form: str = "s"
    is_prepared: bool = False
    has_binary_answer: bool = False
    is_ordered: bool = False
    # 0 is the session that changes tables; 1 only reads.
    session: int = 0
    # What it does to the schema if it succeeds.
    apply: object = None
    # The table that it inserts into, if its identities would then be unknown after a failure.
    numbered: object = None
    # What the rules for differences ask for: "multi" (several rows), "keys" (an UPDATE of keys in any order).
    traits: frozenset = frozenset()

    def for_psycopg(self):
        if not self.parameters:
            return self.text, None
        return self.text.replace("%", "%%").replace(MARK, f"%{self.form}"), tuple(self.parameters)

    def script(self):
        """The statement with its parameters as literals, for people."""
        parts = self.text.split(MARK)
        values = [written(value) for value in self.parameters]
        return "".join(part + value for part, value in zip(parts, [*values, ""])) + ";"


def written(value):
    """A parameter as SQL."""
    return sql.Literal(value).as_string(None)
