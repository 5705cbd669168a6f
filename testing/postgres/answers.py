"""What a database answers, and whether two answers are the same."""

import datetime
import decimal
import json
import math
import re
from dataclasses import dataclass, field

import psycopg
from psycopg.adapt import Loader


class TextLoader(Loader):
    """Intervals as PostgreSQL writes them: Python's have no months."""

    def load(self, data):
        return bytes(data).decode()


@dataclass
class Answer:
    """Rows, or an error."""

    sqlstate: str | None = None
    message: str = ""
    constraint: str | None = None
    # The table and the column of a violated constraint.
    named: tuple = (None, None)
    names: list | None = None
    rows: list = field(default_factory=list)
    count: int = 0
    # The command tag.
    tag: str = ""

    def outline(self):
        """What answers of one cause have in common."""
        if not self.sqlstate:
            return "done"
        message = re.sub(r": (Key|Column|Failing row) .*", "", self.message)
        message = re.sub(r"\"[^\"]*\"|'[^']*'|-?\d+(\.\d+)?|\b[a-z]\w*\.\w+", "…", message)
        return f"{self.sqlstate} {message[:70]}"

    def __str__(self):
        if self.sqlstate:
            return f"{self.sqlstate} {self.message}"
        rows = ", ".join(map(str, self.rows[:8])) + (" …" if len(self.rows) > 8 else "")
        return f"{self.tag}{f' {self.names}' if self.names is not None else ''} {rows}"


class Session:
    """A connection to one of the two."""

    def __init__(self, port, database):
        self.connection = psycopg.connect(
            host="127.0.0.1", port=port, user="postgres", dbname=database, autocommit=True, connect_timeout=20
        )
        self.connection.prepare_threshold = None
        self.connection.adapters.register_loader("interval", TextLoader)
        for setting in ("statement_timeout = 30000", "lock_timeout = 1000"):
            try:
                self.connection.execute(f"SET {setting}")
            except psycopg.Error:
                # Marigram waits for no locks.
                pass

    def ask(self, statement):
        text, parameters = statement.for_psycopg()
        try:
            cursor = self.connection.cursor(binary=statement.has_binary_answer)
            cursor.execute(text, parameters, prepare=True if statement.is_prepared else None)
            names = [column.name for column in cursor.description] if cursor.description else None
            rows = cursor.fetchall() if names is not None else []
            return Answer(names=names, rows=rows, count=cursor.rowcount, tag=cursor.statusmessage or "")
        except psycopg.Error as error:
            message = str(error).split("\n")[0]
            state = error.sqlstate or ("08006" if self.connection.broken else "unreadable answer")
            named = (error.diag.table_name, error.diag.column_name)
            return Answer(sqlstate=state, message=message, constraint=error.diag.constraint_name, named=named)
        except (ValueError, OverflowError) as error:
            return Answer(sqlstate="unreadable answer", message=repr(error))

    def run(self, text):
        """Executes a statement of the comparison itself; its rows."""
        cursor = self.connection.execute(text)
        return cursor.fetchall() if cursor.description else None

    def close(self):
        self.connection.close()


def sort_key(value):
    """A key by which equal values, and floats that are nearly equal, stand side by side."""
    if isinstance(value, (tuple, list)):
        return "[" + ",".join(map(sort_key, value)) + "]"
    if isinstance(value, (float, decimal.Decimal)):
        # Two neighbours may still be rounded apart; then the answers are shown, and the seed says why.
        return f"{float(value):.7e}" if math.isfinite(value) else str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.timezone.utc).isoformat()
    return repr(value)


def same_value(left, right):
    """Whether two values are equal and of one type; the last digits of inexact numbers may differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, (float, decimal.Decimal)):
        if left == right or math.isnan(left) and math.isnan(right):
            return True
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right


def same_rows(ours, theirs, is_ordered=False):
    if not is_ordered:
        ours, theirs = sorted(ours, key=sort_key), sorted(theirs, key=sort_key)
    return len(ours) == len(theirs) and all(map(same_value, ours, theirs))


def what_differs(statement, ours, theirs):
    """In what two answers to a statement differ; None if they are the same."""
    if ours.sqlstate or theirs.sqlstate:
        if ours.sqlstate != theirs.sqlstate:
            return "SQLSTATE"
        is_named = ours.sqlstate in ("23505", "23503", "23514")
        if is_named and ours.constraint != theirs.constraint:
            return "name of the constraint"
        is_named = is_named or ours.sqlstate == "23502"
        return "table and column of the constraint" if is_named and ours.named != theirs.named else None
    if ours.names != theirs.names:
        return "names of columns"
    if ours.count != theirs.count:
        return "number of rows"
    if ours.tag != theirs.tag:
        return "command tag"
    if same_rows(ours.rows, theirs.rows, statement.is_ordered):
        return None
    kinds = [sorted({type(value).__name__ for row in side.rows for value in row}) for side in (ours, theirs)]
    return "rows" if kinds[0] == kinds[1] else f"types of values: {', '.join(set(kinds[0]) ^ set(kinds[1]))}"


def same(statement, ours, theirs):
    """Whether two answers to a statement are the same."""
    return what_differs(statement, ours, theirs) is None
