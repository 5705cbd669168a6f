"""Decides whether two answers are equal, and lists the intended differences."""

import datetime
import decimal
import itertools
import math
import re

# Differences that are intended or out of scope: a pattern of Marigram's error or of the statement,
# and the reason. Any other difference is a fault.
INTENDED = [
    (
        "duckdb",
        re.compile(r"out of range|Overflow|overflow", re.I),
        "DuckDB evaluates what PostgreSQL and Marigram leave out (and the reverse); which of two "
        "expressions fails first, or at all beside a LIMIT or a false condition, is not defined",
    ),
]

# An operator refuses, which is intended if the result is really out of range: DuckDB may have left
# out the row.
REFUSED = re.compile(r"the result of (-?\d+) ([-+*]) (-?\d+) is out of the range of (\w+)")
ABSOLUTE = re.compile(r"Int(\d+)Array overflow on abs\((-\d+)\)")
CAST = re.compile(r"(?:^|\s)(-?\d+) is out of the range of (smallint|integer|bigint)\b")
BITS = {"SMALLINT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64}


def cell(value):
    """A normalized value: equal values have equal results."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, decimal.Decimal):
        return cell(float(value))
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}[value]
        stamp = re.fullmatch(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?Z?", value)
        if stamp:
            fraction = (stamp[3] or ".").ljust(10, "0")
            return f"{stamp[1]} {stamp[2]}{fraction}"
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        # Either zero may represent both; sums differ in their last digits.
        rounded = float(f"{value:.9g}")
        if rounded == 0 or abs(value) < 1e-9:
            return 0
        return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.") + f"{value.microsecond:06}000"
    if isinstance(value, datetime.date):
        return value.strftime("%Y-%m-%d 00:00:00.000000000")
    return str(value)


def near(left, right):
    if left == right:
        return isinstance(left, bool) == isinstance(right, bool)
    numbers = (int, float)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return math.isclose(left, right, rel_tol=1e-8, abs_tol=1e-8)
    return False


def sort_key(row):
    return [(value is None, type(value).__name__ == "str", str(value)) for value in row]


def differing(ours, theirs, in_order):
    """The pairs of rows in which two answers differ; None stands for a missing row."""
    ours = [[cell(value) for value in row] for row in ours]
    theirs = [[cell(value) for value in row] for row in theirs]
    if not in_order:
        ours.sort(key=sort_key)
        theirs.sort(key=sort_key)
    return [
        (left, right)
        for left, right in itertools.zip_longest(ours, theirs)
        if left is None
        or right is None
        or len(left) != len(right)
        or not all(near(a, b) for a, b in zip(left, right))
    ]


def is_intended(ours, theirs):
    """Why a difference in errors is intended, if it is. A side is ("error", text) or ("rows", …)."""
    for side, pattern, reason in INTENDED:
        answer = ours if side == "marigram" else theirs
        if answer[0] == "error" and pattern.search(answer[1]):
            return reason
    refused = REFUSED.search(ours[1]) if ours[0] == "error" else None
    if refused:
        left, right, half = int(refused[1]), int(refused[3]), 1 << (BITS[refused[4]] - 1)
        result = {"+": left + right, "-": left - right, "*": left * right}[refused[2]]
        return None if -half <= result < half else "the result is out of the range"
    absolute = ABSOLUTE.search(ours[1]) if ours[0] == "error" else None
    if absolute and int(absolute[2]) == -(1 << (int(absolute[1]) - 1)):
        return "the result is out of the range"
    cast = CAST.search(ours[1]) if ours[0] == "error" else None
    half = 1 << (BITS[cast[2].upper()] - 1) if cast else 0
    if cast and not -half <= int(cast[1]) < half:
        return "the value does not fit the type"
    return None
