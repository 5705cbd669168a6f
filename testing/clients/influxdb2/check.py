"""What InfluxDB's Python client for version 2 does without Flux: buckets, writes with and without batches, deletes."""

import json
import os
import urllib.request
from datetime import datetime, timezone
from influxdb_client import InfluxDBClient, Point, BucketRetentionRules, WriteOptions
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
client.delete_api().delete(
    datetime(2023, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 1, tzinfo=timezone.utc),
    '_measurement="temperature" AND station="s0"', bucket="weather2", org="mine")
assert count("temperature") == 686, count("temperature")
assert count("rain") == 1
buckets.delete_bucket(made)
assert buckets.find_bucket_by_name("weather2") is None
client.close()
