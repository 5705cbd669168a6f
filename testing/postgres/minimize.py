"""Finds the few statements of a round that still show a difference."""

import time

from answers import same

# A first answer is worth more than the shortest script.
SECONDS_MAX = 20


def shows(statements, try_again, wanted):
    ours, theirs = try_again(statements)
    return not same(statements[-1], ours, theirs) and (ours.sqlstate, theirs.sqlstate) == wanted


def minimized(history, try_again):
    """A short part of `history` whose last statement differs as it does after all of it; `try_again` executes
    statements on new databases and returns both answers to the last."""
    ours, theirs = try_again(history)
    wanted = ours.sqlstate, theirs.sqlstate
    if same(history[-1], ours, theirs):
        return history
    size, end = max(1, len(history) // 2), time.monotonic() + SECONDS_MAX
    while True:
        at, was_shorter = 0, False
        while at < len(history) - 1 and time.monotonic() < end:
            shorter = history[:at] + history[min(at + size, len(history) - 1) :]
            if shows(shorter, try_again, wanted):
                history, was_shorter = shorter, True
            else:
                at += size
        if time.monotonic() > end or size == 1 and not was_shorter:
            return history
        size = max(1, size // 2)
