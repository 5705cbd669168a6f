"""What InfluxDB's Python client 5.x does: databases, retention policies, points, queries, chunks, forms."""

import os

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

port = int(os.environ["MARIGRAM_HTTP_PORT"])
client = InfluxDBClient("127.0.0.1", port, username="me", password="secret", gzip=True)
assert client.ping()
client.create_database("clients")
client.create_database("clients")
assert {"name": "clients"} in client.get_list_database()
client.switch_database("clients")

policies = client.get_list_retention_policies()
assert [policy["name"] for policy in policies] == ["autogen"], policies
client.create_retention_policy("week", "1w", 1, shard_duration="1d")
client.alter_retention_policy("week", duration="2w")
policies = {policy["name"]: policy for policy in client.get_list_retention_policies()}
assert policies["week"]["duration"] == "336h0m0s", policies
assert policies["week"]["shardGroupDuration"] == "24h0m0s", policies
assert not policies["week"]["default"] and policies["autogen"]["default"], policies

points = [
    {
        "measurement": "weather",
        "tags": {"station": station},
        "time": second,
        "fields": {"temperature": 20.5 + second, "rain": second % 2 == 0, "count": second, "note": "a \"b\""},
    }
    for station in ("north", "south")
    for second in range(1, 6)
]
assert client.write_points(points, time_precision="s")
recent = [{"measurement": "weather", "tags": {"station": "north"}, "fields": {"temperature": 1.0}}]
assert client.write_points(recent, retention_policy="week")

answer = client.query("SELECT temperature, rain, count, note FROM weather WHERE station = 'north'", epoch="s")
rows = list(answer.get_points())
assert len(rows) == 5, rows
expected = {"time": 1, "temperature": 21.5, "rain": False, "count": 1, "note": 'a "b"'}
assert rows[0] == expected, rows[0]
assert rows[0]["time"] == 1 and isinstance(rows[0]["count"], int)

groups = client.query("SELECT temperature FROM weather GROUP BY station", epoch="s")
assert [tags for (_, tags) in groups.keys()] == [{"station": "north"}, {"station": "south"}], groups
bound = client.query(
    "SELECT temperature FROM weather WHERE station = $s AND time >= 4s",
    bind_params={"s": "south"},
    epoch="s",
)
assert [row["time"] for row in bound.get_points()] == [4, 5], bound
text = client.query("SELECT temperature FROM weather LIMIT 1")
assert next(text.get_points())["time"] == "1970-01-01T00:00:01Z", text
# The client reads chunks of JSON only, and asks for MessagePack unless it is told otherwise.
by_json = InfluxDBClient("127.0.0.1", port, database="clients", headers={"Accept": "application/json"})
chunks = by_json.query("SELECT temperature FROM weather", chunked=True, chunk_size=3)
assert sum(len(list(chunk.get_points())) for chunk in chunks) == 10
of_week = list(client.query("SELECT temperature FROM week.weather").get_points())
assert [row["temperature"] for row in of_week] == [1.0], of_week
two = client.query("SELECT count FROM weather LIMIT 1; SELECT note FROM weather LIMIT 1")
assert len(two) == 2

for wrong, words in (
    ("SELECT FROM", "error parsing query: "),
    ("SELECT temperature FROM nothing.weather", "retention policy not found: nothing"),
):
    try:
        client.query(wrong)
    except InfluxDBClientError as error:
        assert words in str(error), error
    else:
        raise AssertionError(wrong)
try:
    client.write(["weather temperature=\"hot\" 9"], params={"db": "clients"}, protocol="line")
except InfluxDBClientError as error:
    assert "partial write: field type conflict: " in str(error) and "dropped=1" in str(error), error
else:
    raise AssertionError("a text was stored as a float")

client.drop_retention_policy("week")
client.drop_database("clients")
assert {"name": "clients"} not in client.get_list_database()
client.close()
