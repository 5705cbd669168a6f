"""Fills InfluxDB with what a migration must carry over, or compares InfluxDB with Marigram afterwards.

`testing/influxdb/migration` runs the commands of docs/guides/influxdb-migration.md after `fill OLD`, with `compare OLD NEW`
where the guide compares, before there is a view, and `computed OLD NEW` at the end. OLD and NEW are addresses.
"""

import base64
import json
import math
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# Minutes: all rows of `week` are younger than a week, and do not disappear while this runs.
ROWS = 12_000


def post(address, path, body):
    request = urllib.request.Request(f"http://{address}{path}", body.encode())
    return urllib.request.urlopen(request).read().decode()


def statement(address, text):
    answer = post(address, "/query", urllib.parse.urlencode({"q": text}))
    assert '"error"' not in answer, (text, answer)


def fill(old):
    statement(old, "CREATE DATABASE plant")
    statement(old, "CREATE RETENTION POLICY week ON plant DURATION 1w REPLICATION 1 SHARD DURATION 1d")
    statement(old, "CREATE RETENTION POLICY years ON plant DURATION INF REPLICATION 1")
    statement(old, "CREATE USER ann WITH PASSWORD 'staple'")
    statement(old, "GRANT READ ON plant TO ann")
    statement(
        old,
        "CREATE CONTINUOUS QUERY weather_hour ON plant BEGIN SELECT mean(temperature) AS temperature, "
        "max(gust) AS gust INTO plant.years.weather_hour FROM plant.autogen.weather GROUP BY time(1h), station END",
    )
    draw = random.Random(21)
    hour = int(time.time()) // 3600 * 3600
    weather = []
    for row in range(ROWS):
        second = hour - row * 60
        for station in ("north", r"so\ uth\,x\=1"):
            fields = [f"temperature={draw.gauss(20, 3):.3f}"]
            if draw.random() < 0.5:
                fields.append(f"gust={draw.randrange(90)}i")
            if draw.random() < 0.1:
                fields.append('note="say \\"hi\\" \\\\ there, x=1"')
            if draw.random() < 0.1:
                fields.append("rain=" + draw.choice(("true", "false")))
            weather.append(f"weather,station={station} {','.join(fields)} {second}")
        if row % 7 == 0:
            weather.append(rf"odd\ name\,x,ta\ g=a\=b fi\ eld={row / 3},n={row}i {second}")
    weather.append(f'weather,station=north note="two\nlines" {hour + 1}')
    doors = [f"door,id=d{row % 3} open={'ft'[row % 2]} {hour - row * 60}" for row in range(2000)]
    hours = [
        f"weather_hour,station=north temperature={row / 7},gust={row}i {hour - row * 3600}" for row in range(500)
    ]
    for policy, lines in (("autogen", weather), ("week", doors), ("years", hours)):
        for first in range(0, len(lines), 5000):
            post(old, f"/write?db=plant&rp={policy}&precision=s", "\n".join(lines[first : first + 5000]))


QUESTIONS = [
    "SHOW MEASUREMENTS",
    "SHOW SERIES",
    "SHOW TAG KEYS",
    "SHOW TAG VALUES WITH KEY = station",
    "SHOW FIELD KEYS FROM weather",
    'SHOW FIELD KEYS FROM "odd name,x"',
    "SHOW RETENTION POLICIES ON plant",
    "SELECT count(*) FROM /.*/",
    "SELECT count(*) FROM week./.*/",
    "SELECT count(*) FROM years./.*/",
    "SELECT * FROM weather",
    'SELECT * FROM "odd name,x"',
    "SELECT * FROM week.door",
    "SELECT * FROM years.weather_hour WHERE time < now() - 4h",
    "SELECT mean(temperature), max(gust), count(rain) FROM weather WHERE time > 0 GROUP BY time(1d), station fill(none)",
    "SELECT count(open) FROM week.door GROUP BY id",
]


def answers(address, text, login=""):
    query = urllib.parse.urlencode({"db": "plant", "epoch": "ns", "chunked": "true", "q": text})
    lines = urllib.request.urlopen(f"http://{address}/query?{query}{login}").read().decode().splitlines()
    rows = []
    for line in lines:
        for result in json.loads(line)["results"]:
            assert "error" not in result, (text, result)
            for series in result.get("series", []):
                key = (series.get("name"), tuple(series.get("tags", {}).items()), tuple(series["columns"]))
                rows.extend((key, tuple(row)) for row in series.get("values", []))
    return rows


def alike(their, our):
    """Whether rows of the same series are the same, but for the last digits that adding in another order changes."""
    close = (
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(their[1], our[1])
    )
    return their[0] == our[0] and len(their[1]) == len(our[1]) and all(close)


def compare(old, new):
    for text in QUESTIONS:
        theirs, ours = answers(old, text), answers(new, text)
        assert theirs, text
        for their, our in zip(theirs, ours):
            assert alike(their, our), (text, their, our)
        assert len(theirs) == len(ours), (text, len(theirs), len(ours))
        print(f"{len(theirs):6} rows the same: {text}")


def computed(old, new):
    """What stands for the continuous query, and the user, after the last command of the guide."""
    assert "401" in str(refused(new, "")) and "401" in str(refused(new, "&u=ann&p=wrong"))
    text = (
        "SELECT mean(temperature) AS temperature, max(gust) AS gust FROM {} WHERE time >= now() - 2h "
        "GROUP BY time(1h), station"
    )
    theirs = [row for _, row in answers(old, text.format("weather"))]
    written = "SELECT temperature, gust FROM years.weather_hour WHERE time >= now() - 2h GROUP BY station"
    ours = [row for _, row in answers(new, written, "&u=ann&p=staple")]
    assert set(ours) & set(theirs), (theirs, ours)
    request = urllib.request.Request(
        f"http://{new}/api/v1/sql?db=plant",
        b"SELECT count(*) AS n FROM weather_hourly",
        {"Authorization": "Basic " + base64.b64encode(b"ann:staple").decode()},
    )
    hours = json.load(urllib.request.urlopen(request))["rows"][0][0]
    series = answers(old, "SELECT count(temperature) FROM weather GROUP BY time(1h), station fill(none)")
    # An hour of a line without a temperature belongs to the view, too.
    assert hours - len(series) in (0, 1), (hours, len(series))
    print(f"{hours:6} hours in the view")


def refused(address, login):
    try:
        answers(address, "SHOW MEASUREMENTS", login)
    except urllib.error.HTTPError as error:
        return error.code
    raise AssertionError(f"{login} was let in")


if __name__ == "__main__":
    {"fill": fill, "compare": compare, "computed": computed}[sys.argv[1]](*sys.argv[2:])
