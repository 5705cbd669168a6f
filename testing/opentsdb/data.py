"""Random points, and the names that a run gives its metrics and tags.

Names begin with a word of the run, so that one OpenTSDB serves many runs. Their UIDs are assigned in the order of
the names: OpenTSDB orders series by UIDs, Marigram by names.
"""

from dataclasses import dataclass, field

# Tuesday 2013-01-01 00:00 UTC.
BEGIN = 1356998400
HOUR = 3600

KEYS = ("cpu", "dc", "host")
VALUES = {
    "cpu": ("0", "1", "2"),
    "dc": ("LAX", "lga", "lga.2"),
    "host": ("Web01", "db_1", "eu/web03", "web01", "web02"),
}


@dataclass
class Series:
    tags: dict
    # Milliseconds and values, ascending. A value is an int or a float, which is how it is sent.
    points: list


@dataclass
class Metric:
    name: str
    kind: str
    # Whether times have milliseconds.
    has_ms: bool = False
    series: list = field(default_factory=list)

    @property
    def has_integers(self):
        return self.kind in ("integers", "counter")

    @property
    def twin(self):
        """The metric with the same values as floats."""
        return f"{self.name}.f" if self.has_integers else self.name

    def times(self):
        return [time for series in self.series for time, _ in series.points]


class Names:
    """The names of a run."""

    def __init__(self, word):
        self.word = word

    def key(self, key):
        return f"{self.word}{key}"

    def value(self, value):
        return f"{self.word}-{value}"

    def metric(self, name):
        return f"{self.word}.{name}"

    def all_keys(self):
        return sorted(self.key(key) for key in KEYS)

    def all_values(self):
        return sorted(self.value(value) for values in VALUES.values() for value in values)


def tag_sets(random, names):
    """Some distinct sets of tags; all have a host, and not all of them a data centre."""
    found = {}
    for _ in range(random.randint(2, 7)):
        tags = {names.key("host"): names.value(random.choice(VALUES["host"]))}
        if random.random() < 0.8:
            tags[names.key("cpu")] = names.value(random.choice(VALUES["cpu"]))
        if random.random() < 0.4:
            tags[names.key("dc")] = names.value(random.choice(VALUES["dc"]))
        found[tuple(sorted(tags.items()))] = tags
    return list(found.values())


def times(random, kind, has_ms):
    """Ascending milliseconds of one series."""
    if kind == "calendar":
        # A year and a half, over both changes of the clock.
        now, step, count = BEGIN - 40 * 24 * HOUR + random.randrange(HOUR), 20 * HOUR, random.randint(200, 600)
    else:
        now, step, count = BEGIN + random.randrange(3 * HOUR), random.choice((10, 60, 300)), random.randint(2, 90)
    regular = random.random() < 0.5
    out = []
    for _ in range(count):
        fraction = random.randrange(1000) if has_ms else 0
        out.append(now * 1000 + fraction)
        advance = step if regular else random.randint(1, 2 * step)
        if random.random() < 0.05:
            advance += step * random.randint(2, 20)
        now += max(0 if has_ms and random.random() < 0.3 else 1, advance)
    return sorted(set(out))


def values(random, kind, count):
    if kind == "counter":
        now, out = random.randrange(1000), []
        for _ in range(count):
            now = random.randrange(50) if random.random() < 0.1 else now + random.randrange(200)
            out.append(now)
        return out
    if kind == "integers":
        return [random.randint(-50, 100) for _ in range(count)]
    return [random.randint(-40000, 80000) / 8 + 0.0 for _ in range(count)]


def metrics(random, names, number):
    """The metrics of a round."""
    out = []
    for place, kind in enumerate(("integers", "floats", "counter", "milliseconds", "calendar", "floats")):
        has_ms = kind == "milliseconds"
        metric = Metric(names.metric(f"m{number}.{kind}{place}"), kind, has_ms)
        for tags in tag_sets(random, names):
            at = times(random, kind, has_ms)
            metric.series.append(Series(tags, list(zip(at, values(random, kind, len(at))))))
        out.append(metric)
    return out


def points(random, metric):
    """The points of a metric as JSON has them, in any order, and those of its twin."""
    out = []
    for series in metric.series:
        for ms, value in series.points:
            # Whole seconds stay seconds: OpenTSDB stores a second and its millisecond apart.
            time = ms // 1000 if ms % 1000 == 0 else ms
            out.append({"metric": metric.name, "timestamp": time, "value": value, "tags": series.tags})
            if metric.has_integers:
                out.append({"metric": metric.twin, "timestamp": time, "value": float(value), "tags": series.tags})
    random.shuffle(out)
    return out
