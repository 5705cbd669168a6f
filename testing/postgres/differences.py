"""The differences that are on purpose, with their reasons. Any other difference is a fault."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Difference:
    """`applies` is asked with the statement and both answers, which are not the same."""

    name: str
    reason: str
    applies: Callable


def both_violate(ours, theirs):
    """Whether both say that a constraint, or a value for a column, is violated."""
    return all(answer.sqlstate and answer.sqlstate[:2] in ("22", "23", "21") for answer in (ours, theirs))


DIFFERENCES = [
    Difference(
        "which of several violations is reported",
        "a statement of several rows may violate several constraints; PostgreSQL finishes one row before the "
        "next, Marigram checks a constraint of many rows at a time",
        lambda statement, ours, theirs: "multi" in statement.traits and both_violate(ours, theirs),
    ),
    Difference(
        "keys that change places",
        "PostgreSQL checks a unique key after each row of an UPDATE, so the result depends on the order of rows "
        "on disk, which each database chooses",
        lambda statement, ours, theirs: "keys" in statement.traits
        and "23505" in (ours.sqlstate, theirs.sqlstate),
    ),
    Difference(
        "a new column that numbers existing rows",
        "rows are numbered in the order in which they are stored, which each database chooses",
        lambda statement, ours, theirs: "numbering" in statement.traits
        and not ours.sqlstate
        and not theirs.sqlstate,
    ),
    Difference(
        "values without a type",
        "a literal or parameter whose type nothing tells is a text; PostgreSQL refuses some of them, as in "
        "array_agg('a') or $1 IS NULL",
        lambda statement, ours, theirs: theirs.sqlstate in ("42725", "42P18") and not ours.sqlstate,
    ),
    Difference(
        "constants that are never needed",
        "PostgreSQL converts constants when it plans a statement, Marigram when a row needs them: DO UPDATE SET "
        "a = '25:00' without a conflict",
        lambda statement, ours, theirs: "ON CONFLICT" in statement.text
        and theirs.sqlstate in ("22001", "22003", "22007", "22008", "22023", "22P02")
        and not ours.sqlstate,
    ),
    Difference(
        "RETURNING after FROM or USING",
        "RETURNING gives the columns of the table that changes, PostgreSQL those of the others, too: more for *, and a "
        "bare name may mean several",
        lambda statement, ours, theirs: statement.kind in ("UPDATE", "DELETE")
        and "RETURNING" in statement.text
        and (" FROM " in statement.text.split(" SET ")[-1] or " USING " in statement.text)
        and not ours.sqlstate
        and (theirs.sqlstate == "42702" or ours.names != theirs.names),
    ),
    Difference(
        "TRUNCATE of a table to which empty tables refer",
        "PostgreSQL refuses it by the definition, Marigram only if there are rows that refer to it",
        lambda statement, ours, theirs: statement.kind == "TRUNCATE"
        and theirs.sqlstate == "0A000"
        and not ours.sqlstate,
    ),
]


def on_purpose(statement, ours, theirs):
    """The entry that allows a difference, if there is one."""
    return next((entry for entry in DIFFERENCES if entry.applies(statement, ours, theirs)), None)
