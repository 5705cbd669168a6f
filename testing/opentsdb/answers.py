"""Decides whether two answers to /api/query are the same, and which differences are on purpose."""

import json
import math
from dataclasses import dataclass

FLOAT_TOLERANCE = 1e-9
HOUR_MS = 3_600_000
CHANGING_ZONES = ("Europe/Berlin", "America/New_York")
DAY_MS = 24 * HOUR_MS
UNITS = {
    "ms": 1, "s": 1000, "m": 60_000, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS, "n": 30 * DAY_MS, "y": 365 * DAY_MS,
}  # fmt: skip


class Repeated(dict):
    """An object some of whose keys were repeated."""

    repeated = frozenset()


def pairs(found):
    out = Repeated(found)
    if len(out) < len(found):
        seen, again = set(), set()
        for key, _ in found:
            (again if key in seen else seen).add(key)
        out.repeated = frozenset(again)
    return out


@dataclass
class Group:
    metric: str
    tags: dict
    aggregated: list
    tsuids: int
    # Values by time.
    points: dict
    # Times that occurred several times.
    repeated: frozenset

    @property
    def name(self):
        return self.metric, tuple(sorted(self.tags.items())), tuple(sorted(self.aggregated))


def groups(content):
    """The groups of an answer, and whether it ends with a summary."""
    out, has_summary = [], False
    for part in json.loads(content, object_pairs_hook=pairs):
        if "statsSummary" in part:
            has_summary = True
            continue
        dps = part["dps"]
        if isinstance(dps, list):
            times = [int(time) for time, _ in dps]
            repeated = frozenset(time for time, again in zip(times, times[1:]) if time == again)
            points = {int(time): value for time, value in dps}
        else:
            times = [int(time) for time in dps]
            repeated = frozenset(int(time) for time in dps.repeated)
            points = {int(time): value for time, value in dps.items()}
        if times != sorted(times):
            raise ValueError("times are not ascending")
        tsuids = part.get("tsuids")
        if tsuids is not None and not (tsuids and tsuids == sorted(tsuids) and all(is_hex(one) for one in tsuids)):
            raise ValueError(f"no TSUIDs: {tsuids}")
        count = -1 if tsuids is None else len(tsuids)
        out.append(Group(part["metric"], part["tags"], part["aggregateTags"], count, points, repeated))
    return out, has_summary


def is_hex(text):
    return len(text) % 2 == 0 and text and all(digit in "0123456789ABCDEF" for digit in text)


def same(theirs, ours):
    if isinstance(theirs, str) or isinstance(ours, str) or theirs is None or ours is None:
        return theirs == ours
    return math.isclose(theirs, ours, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_TOLERANCE)


def interval_ms(downsample):
    """The length of a downsampling's buckets; 0 for one bucket."""
    text = downsample.split("-")[0].removesuffix("c")
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(digits) :]
    return 0 if unit == "all" else int(digits) * UNITS[unit]


class Question:
    """A query with what is known of its data."""

    def __init__(self, query, metrics):
        self.query = query
        self.metrics = {name: metric for metric in metrics for name in (metric.name, metric.twin)}

    def sub(self, metric):
        found = [sub for sub in self.query.subs if sub.metric == metric]
        return found[0] if found else None

    def has_rounded(self):
        """Whether OpenTSDB computes with integers."""
        return any(
            self.metrics[sub.metric].has_integers and not sub.downsample and not sub.rate for sub in self.query.subs
        )

    def with_floats(self):
        return self.query.with_metrics({metric.name: metric.twin for metric in self.metrics.values()})

    def rates_begin(self, sub):
        """The time from which each series of a metric has a rate of its own, ms."""
        if sub.options and dict(sub.options).get("dropResets"):
            return math.inf
        length = interval_ms(sub.downsample) if sub.downsample else 1
        if length == 0 or "c-" in sub.downsample:
            return math.inf
        start = self.query.start_ms - self.query.start_ms % length
        start -= start % HOUR_MS
        start += -start % length
        begin = 0
        for series in self.metrics[sub.metric].series:
            seen = sorted({time - time % length for time, _ in series.points if time >= start})
            if len(seen) > 1:
                begin = max(begin, seen[1])
            elif seen:
                begin = math.inf
        return begin

    def on_purpose(self, sub, theirs, ours, time):
        """Which difference allows that two points of a group differ."""
        ms = time if self.query.has_ms else time * 1000
        has_estimate = sub.aggregator.startswith("ep") or "-ep" in sub.downsample
        if "c-" in sub.downsample:
            if "hc-" in sub.downsample and self.query.zone in CHANGING_ZONES:
                return "changed clock"
            if time == min(theirs.points) or time >= max(theirs.points):
                return "calendar edges"
        if not (time in theirs.points and time in ours.points):
            return None
        members = self.members(theirs)
        if sub.rate and len(members) > 1 and ms < self.rates_begin(sub):
            return "first rate"
        if not self.query.has_ms and (time in theirs.repeated):
            return "one second"
        if has_estimate:
            return "estimates"
        has_gaps = len({frozenset(series.tags) for series in members}) > 1
        if sub.aggregator in ("first", "last", "diff") and has_gaps:
            return "order"
        return None

    def members(self, group):
        """The series that may belong to a group."""
        return [
            series
            for series in self.metrics[group.metric].series
            if all(series.tags.get(key, value) == value for key, value in group.tags.items())
        ]


def tokens(sub, theirs, ours):
    """Why the kind of a number is wrong; `whole floats` if it differs on purpose."""
    if isinstance(ours, (str, type(None))) or isinstance(theirs, (str, type(None))):
        return None
    if sub.downsample or sub.rate:
        return None if isinstance(ours, float) else "computed values are floats"
    if isinstance(theirs, int) and not isinstance(ours, int) and float(ours).is_integer():
        return "an integer is shown without a point"
    if isinstance(theirs, float) and isinstance(ours, int):
        return "whole floats"
    return None


def compare(question, theirs, ours):
    """The faults of our answer, and the names of the differences on purpose."""
    faults, allowed = [], set()
    (theirs, their_summary), (ours, our_summary) = groups(theirs), groups(ours)
    if their_summary != our_summary:
        faults.append("the summary is missing or too many")
    if any(not group.points for group in theirs):
        allowed.add("fewer groups")
    theirs, ours = ([group for group in groups if group.points] for groups in (theirs, ours))
    known = {group.name for group in theirs}
    edges = [group for group in ours if group.name not in known and len(group.points) == 1]
    if any("c-" in question.sub(group.metric).downsample for group in edges):
        # OpenTSDB has left out its only bucket.
        allowed.add("calendar edges")
        ours = [group for group in ours if group not in edges]
    if [group.name for group in theirs] != [group.name for group in ours]:
        key = lambda group: ([sub.metric for sub in question.query.subs].index(group.metric), group.name)
        theirs, ours = sorted(theirs, key=key), sorted(ours, key=key)
        if [group.name for group in theirs] != [group.name for group in ours]:
            faults.append(f"groups: {[group.name for group in theirs]} and not {[group.name for group in ours]}")
            return faults, allowed
        allowed.add("order")
    for left, right in zip(theirs, ours):
        sub = question.sub(left.metric)
        if left.tsuids != right.tsuids:
            faults.append(f"{left.tsuids} TSUIDs and not {right.tsuids}")
        for time in sorted(left.points.keys() | right.points.keys()):
            is_there = time in left.points and time in right.points
            if is_there and same(left.points[time], right.points[time]):
                kind = tokens(sub, left.points[time], right.points[time])
                if kind == "whole floats":
                    allowed.add(kind)
                elif kind:
                    faults.append(f"{kind}: {left.tags} {time}: {left.points[time]} {right.points[time]}")
                continue
            name = question.on_purpose(sub, left, right, time)
            if name:
                allowed.add(name)
            else:
                shown = [group.points.get(time, "nothing") for group in (left, right)]
                faults.append(f"{left.tags} {left.aggregated} at {time}: {shown[0]} and not {shown[1]}")
    return faults, allowed
