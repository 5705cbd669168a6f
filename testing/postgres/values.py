"""The types of reference tables, the values that the generator uses, and how they are written."""

import datetime
import decimal
import json
import re
import uuid
from dataclasses import dataclass

from psycopg.types.json import Json, Jsonb

UTC = datetime.timezone.utc


@dataclass(frozen=True)
class Type:
    """A type of a column. Expressions of one family may be mixed."""

    name: str
    family: str
    # Few values, so that keys collide.
    domain: tuple = ()
    # A value that does not fit, as SQL.
    wrong: str | None = None
    is_key: bool = True

    def __repr__(self):
        return self.name


def dates(*texts):
    return tuple(datetime.date.fromisoformat(text) for text in texts)


def times(*texts, zone=None):
    return tuple(datetime.datetime.fromisoformat(text).replace(tzinfo=zone) for text in texts)


NAN = float("nan")
NUMERICS = tuple(map(decimal.Decimal, ("0", "1", "-2.25", "3.50", "10.01")))
STAMPS = ("2024-01-31 23:59:59.5", "2024-02-29", "2023-12-31 12:30:00", "1969-07-20 20:17:40.000001")
UUIDS = tuple(uuid.UUID(int=number * 0x1111_0000_0000_0000_0000_0000_0000 + 7) for number in (0, 1, 2, 9))
DOCUMENTS = ({"a": 1, "b": [1, 2]}, {"a": "x"}, [], {"b": {"c": None}}, 5, "t", {"a": None})
TEXTS = ("a", "b", "ab", "", "B", "é", "it's", "a%b_c", " a ")

TYPES = [
    Type("boolean", "bool", (True, False), "'maybe'", False),
    Type("smallint", "int", (-1, 0, 1, 2, 3, 5), "40000"),
    Type("integer", "int", (-1, 0, 1, 2, 3, 4, 7, 100), "3000000000"),
    Type("bigint", "int", (-1, 0, 1, 2, 3, 6, 5_000_000_000), "'1x'"),
    Type("real", "float", (0.0, 0.25, -1.5, 2.0, NAN), "'x'", False),
    Type("double precision", "float", (0.0, 0.1, -1.5, 2.0, 1e15, NAN), "'1,5'", False),
    Type("numeric(8,2)", "numeric", NUMERICS, "12345678.9"),
    Type("numeric(5,0)", "numeric", tuple(map(decimal.Decimal, (0, 1, -3, 12345))), "100000"),
    Type("text", "text", TEXTS, None),
    Type("varchar(5)", "text", TEXTS, "'too long'"),
    Type("char(3)", "text", ("a", "b", "ab", "", "abc", "é"), "'abcd'"),
    Type("bytea", "bytea", (b"", b"\x00", b"a", b"\xff\x00b"), r"'\xf'"),
    Type("date", "date", dates("2024-01-31", "2024-02-29", "2023-12-31", "1969-07-20"), "'2023-02-29'"),
    Type(
        "time",
        "time",
        tuple(map(datetime.time.fromisoformat, ("00:00", "12:30", "23:59:59.999999", "01:02:03.5"))),
        "'25:00'",
    ),
    Type("timestamp", "timestamp", times(*STAMPS), "'2024-13-01'"),
    Type("timestamptz", "timestamptz", times(*STAMPS, zone=UTC), "'yesterdayish'"),
    # As texts: Python has no months.
    Type(
        "interval",
        "interval",
        ("1 day", "1 mon", "02:00:00", "-3 days", "1 year 2 mons 3 days 04:05:06.5", "00:00:00"),
        "'1 dayz'",
        False,
    ),
    Type("uuid", "uuid", UUIDS, "'0-1'"),
    Type("json", "json", DOCUMENTS, "'{a: 1}'", False),
    Type("jsonb", "jsonb", DOCUMENTS, "'{\"a\": }'", False),
]
BY_NAME = {kind.name: kind for kind in TYPES}
KEY_TYPES = [kind for kind in TYPES if kind.is_key]
# Types whose values have one order in both databases.
ORDERED = {
    "bool",
    "int",
    "float",
    "numeric",
    "text",
    "bytea",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "uuid",
}
PREFIXES = {
    "date": "DATE ",
    "time": "TIME ",
    "timestamp": "TIMESTAMP ",
    "timestamptz": "TIMESTAMPTZ ",
    "interval": "INTERVAL ",
}
CASTS = {"bytea": "bytea", "uuid": "uuid", "json": "json", "jsonb": "jsonb", "text": "text"}


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def literal(family, value, is_typed=False):
    """A value as SQL; where nothing beside it says what it is, with its type."""
    if value is None:
        return "NULL"
    if family == "bool":
        return "TRUE" if value else "FALSE"
    if family in ("int", "numeric"):
        return str(value) if value >= 0 else f"({value})"
    if family == "float":
        text = repr(value) if value == value and abs(value) != float("inf") else quoted(str(value))
        return f"CAST({text} AS double precision)" if is_typed else text
    if family == "bytea":
        text = quoted("\\x" + bytes(value).hex())
    elif family in ("json", "jsonb"):
        text = quoted(json.dumps(value))
    else:
        text = quoted(str(value))
    if not is_typed:
        return text
    if family in PREFIXES:
        return PREFIXES[family] + text
    return f"CAST({text} AS {CASTS[family]})" if family != "text" else text


def parameter(family, value):
    """A value as psycopg sends it; None if Python has no such value."""
    if family == "json":
        return Json(value)
    if family == "jsonb":
        return Jsonb(value)
    if family == "interval":
        days = re.fullmatch(r"(-?\d+) days?", value)
        hours = re.fullmatch(r"(\d\d):(\d\d):(\d\d)", value)
        if days:
            return datetime.timedelta(days=int(days[1]))
        return datetime.timedelta(hours=int(hours[1])) if hours else None
    return value
