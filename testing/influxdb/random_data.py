"""Random rows in line protocol, for two servers that are compared.

The rows have nulls, all types, names that need quotes, a field with the name of a tag, and a second
retention policy. Some are written late, and some twice. No two series of a measurement share a time:
InfluxDB leaves to chance which of them comes first.
"""

SECOND = 10**9

# Measurements as InfluxQL and as line protocol write them.
MEASUREMENTS = {"cpu": "cpu", "mem": "mem", '"odd name,x"': "odd\\ name\\,x"}
POLICIES = ("autogen", "long")


class RandomRows:
    """Rows of several measurements and policies."""

    def __init__(self, chance):
        self.chance = chance

    def tags(self):
        tags = ""
        if self.chance.random() < 0.8:
            tags += ",host=" + self.chance.choice(["a", "b", "c", "d\\ e", "é"])
        if self.chance.random() < 0.2:
            tags += ",kind=" + self.chance.choice(["1", "2"])
        if self.chance.random() < 0.5:
            tags += ",region=" + self.chance.choice(["eu", "us"])
        return tags

    def fields(self, measurement, tags):
        chance, fields = self.chance, []
        if chance.random() < 0.9:
            fields.append(f"v={chance.randrange(-40, 400) / 8}")
        if chance.random() < 0.7:
            fields.append(f"i={chance.randrange(-20, 50)}i")
        if chance.random() < 0.5:
            fields.append(f's="{chance.choice(["x", "y", "zz", "", "<&> é"])}"')
        if chance.random() < 0.4:
            fields.append(f"b={chance.choice('tf')}")
        if measurement == "mem" and chance.random() < 0.6:
            fields.append(f"used={chance.randrange(100)}i")
        # A field beside a tag of its name.
        if ",kind=" in tags and measurement == "mem" and chance.random() < 0.5:
            fields.append(f"kind={chance.randrange(9)}i")
        if measurement.startswith("odd") and chance.random() < 0.5:
            fields.append(f"in\\ out={chance.randrange(100)}")
        return fields

    def writes(self, count):
        """Policies with lines, in the order in which they are written."""
        chance, taken, rows = self.chance, set(), []
        for _ in range(count):
            name = chance.choice(["cpu", "cpu", "cpu", "mem", "odd\\ name\\,x"])
            policy = "long" if chance.random() < 0.1 else "autogen"
            time = chance.randrange(0, 1200 * SECOND, SECOND // 4)
            tags = self.tags()
            fields = self.fields(name, tags)
            if not fields or (policy, name, time) in taken:
                continue
            taken.add((policy, name, time))
            rows.append((time, policy, name, tags, fields))
        late = lambda: chance.randrange(400 * SECOND) if chance.random() < 0.2 else 0
        rows.sort(key=lambda row: row[0] + late())
        # A row that is written again has other values, and fewer or more fields.
        for time, policy, name, tags, _ in chance.sample(rows, len(rows) // 20):
            fields = self.fields(name, tags)
            if fields:
                rows.append((time, policy, name, tags, fields))
        for start in range(0, len(rows), 60):
            for policy in POLICIES:
                lines = [
                    f"{name}{tags} {','.join(fields)} {time}"
                    for time, its, name, tags, fields in rows[start : start + 60]
                    if its == policy
                ]
                if lines:
                    yield policy, "\n".join(lines)
