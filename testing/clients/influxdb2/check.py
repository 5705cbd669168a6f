"""What InfluxDB's Python client for version 2 does: buckets, writes with and without batches, queries, deletes."""

import json
import os
import urllib.request
from datetime import datetime, timedelta, timezone
from influxdb_client import InfluxDBClient, Dialect, Point, BucketRetentionRules, WriteOptions
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

url = f"http://127.0.0.1:{os.environ['MARIGRAM_HTTP_PORT']}"
client = InfluxDBClient(url=url, token="any", org="mine", enable_gzip=True)
assert client.ping()
assert client.ready().status == "ready"
assert client.health().status == "pass"
assert client.organizations_api().find_organizations(org="mine")[0].name == "mine"
assert client.users_api().me().name == "http"  # what a server without users calls everyone here

buckets = client.buckets_api()
rule = BucketRetentionRules(type="expire", every_seconds=7200)
made = buckets.create_bucket(bucket_name="weather2", retention_rules=rule, org="mine")
assert made.name == "weather2" and made.retention_rules[0].every_seconds == 7200, made
try:
    buckets.create_bucket(bucket_name="weather2", org="mine")
except ApiException as error:
    assert error.status == 422 and "already exists" in error.body, error
else:
    raise AssertionError("a bucket was made twice")
made.retention_rules = [BucketRetentionRules(type="expire", every_seconds=0)]
assert buckets.update_bucket(bucket=made).retention_rules[0].every_seconds == 0
assert buckets.find_bucket_by_name("weather2").id == made.id
assert buckets.find_bucket_by_name("nothing") is None
assert buckets.find_bucket_by_id(made.id).name == "weather2"
assert "weather2" in [bucket.name for bucket in buckets.find_buckets_iter()]



def point(n):
    return Point("temperature").tag("station", f"s{n % 3}").field("value", n / 2).time(1700000000 + n, "s")


with client.write_api(write_options=SYNCHRONOUS) as write:
    write.write(bucket="weather2", record=[point(n) for n in range(30)])
    write.write(bucket="weather2", record="rain,station=s1 mm=1i 1700000000", write_precision="s")
    try:
        write.write(bucket="weather2", record="temperature value=\"hot\" 1")
    except ApiException as error:
        assert error.status == 400, error
    else:
        raise AssertionError("a text was stored as a float")
with client.write_api(write_options=WriteOptions(batch_size=100, flush_interval=50)) as write:
    for n in range(30, 1030):
        write.write(bucket="weather2", record=point(n))


def count(table):
    body = json.dumps({"db": "weather2", "q": f"SELECT count(*) AS n FROM {table}"}).encode()
    request = urllib.request.Request(f"{url}/api/v3/query_sql", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))[0]["n"]
assert count("temperature") == 1030, count("temperature")

# Queries: tables, streams, CSV, parameters, errors.
query = client.query_api()
script = '''
from(bucket: _bucket)
  |> range(start: _start, stop: _stop)
  |> filter(fn: (r) => r._measurement == "temperature" and r._field == "value" and r._value >= _least)
'''
start = datetime.fromtimestamp(1700000000, timezone.utc)
params = {"_bucket": "weather2", "_start": start, "_stop": start + timedelta(seconds=30), "_least": 1.0}
tables = query.query(script, params=params)
assert [table.records[0]["station"] for table in tables] == ["s0", "s1", "s2"], tables
assert sum(len(table.records) for table in tables) == 28
first = tables[2].records[0]
assert (first.get_value(), first.get_field(), first.get_measurement()) == (1.0, "value", "temperature"), first
assert first.get_time() == start + timedelta(seconds=2) and first.get_stop() == params["_stop"], first
assert {column.label for column in tables[0].get_group_key()} == {
    "_start", "_stop", "_field", "_measurement", "station"}
assert len(list(query.query_stream(script, params=params))) == 28
rows = list(query.query_csv(script, params=params, dialect=Dialect(annotations=[], header=True)))
assert rows[0] == ["", "result", "table", "_start", "_stop", "_time", "_value", "_field", "_measurement", "station"], rows[0]
assert len([row for row in rows if row and row[1] == "_result"]) == 28, rows
wide = '''
from(bucket: "weather2") |> range(start: 2023-11-14T22:13:20Z, stop: 2023-11-14T22:14:20Z)
  |> filter(fn: (r) => r._field == "value")
  |> aggregateWindow(every: 30s, fn: mean, createEmpty: false)
  |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")
'''
pivoted = query.query(wide)
assert [[record["value"] for record in table.records] for table in pivoted] == [
    [2.25, 12.75, 24.75], [2.0, 11.75, 24.5], [2.5, 12.25, 25.0]], pivoted
try:
    query.query("from(bucket: \"weather2\") |> range(start: 0) |> holtWinters(n: 1)")
except ApiException as error:
    assert error.status == 400 and "holtWinters" in str(error.body) and "@1:" in str(error.body), error
else:
    raise AssertionError("an unknown function was called")
try:
    query.query("from(bucket: \"nothing\") |> range(start: 0)")
except ApiException as error:
    assert error.status == 404 and "could not find bucket" in str(error.body), error
else:
    raise AssertionError("a bucket was read that is not there")
try:
    import pandas
except ImportError:
    pass
else:
    frame = query.query_data_frame(script, params=params)
    assert len(frame) == 28 and set(frame["station"]) == {"s0", "s1", "s2"}, frame

client.delete_api().delete(
    datetime(2023, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 1, tzinfo=timezone.utc),
    '_measurement="temperature" AND station="s0"', bucket="weather2", org="mine")
assert count("temperature") == 686, count("temperature")
assert count("rain") == 1
buckets.delete_bucket(made)
assert buckets.find_bucket_by_name("weather2") is None
client.close()
