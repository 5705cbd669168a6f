"""What InfluxDB 3's Python client does: writes by HTTP; SQL and InfluxQL by Arrow Flight."""

import os

import pandas
from influxdb_client_3 import InfluxDBClient3, Point, WriteOptions, SYNCHRONOUS, write_client_options
from influxdb_client_3.exceptions.exceptions import InfluxDBError

http_port, flight_port = int(os.environ["MARIGRAM_HTTP_PORT"]), int(os.environ["MARIGRAM_FLIGHT_PORT"])


def connect(options):
    return InfluxDBClient3(
        host=f"http://127.0.0.1:{http_port}", token="any", database="influx3",
        write_client_options=write_client_options(write_options=options),
        write_port_overwrite=http_port, query_port_overwrite=flight_port,
    )


def point(n):
    return Point("home").tag("room", f"r{n % 3}").field("temp", n / 2).field("n", n).time(1700000000 + n, "s")


with connect(SYNCHRONOUS) as client:
    client.write([point(n) for n in range(30)], write_precision="s")
    client.write("home,room=r9 temp=99 1700000100", write_precision="s")
    table = client.query("SELECT room, temp FROM home WHERE n > 20 ORDER BY time")
    assert table.num_rows == 9, table
    frame = client.query("SELECT room, max(temp) AS hottest FROM home GROUP BY room ORDER BY room", mode="pandas")
    assert list(frame["hottest"]) == [13.5, 14.0, 14.5, 99.0], frame
    named = client.query("SELECT n FROM home WHERE room = $room AND temp > $least ORDER BY n",
                         query_parameters={"room": "r1", "least": 10})
    assert named.column("n").to_pylist() == [22, 25, 28], named
    influxql = client.query("SELECT mean(temp) FROM home WHERE room = 'r0' GROUP BY room", language="influxql")
    assert influxql.column("mean").to_pylist() == [6.75], influxql
    measurements = client.query("SHOW MEASUREMENTS", language="influxql")
    assert measurements.num_rows == 1, measurements
    chunks = client.query("SELECT * FROM home", mode="chunk")
    assert sum(chunk.data.num_rows for chunk in chunks) == 31
    try:
        client.query("SELECT nothing FROM home")
    except Exception as error:
        assert "nothing" in str(error), error
    else:
        raise AssertionError("a column that is not there was selected")
    try:
        client.write('home,room=r1 temp="hot" 1700000000', write_precision="s")
    except InfluxDBError as error:
        assert error.response.status == 400, error
    else:
        raise AssertionError("a text was stored as a float")
    frame = pandas.DataFrame({"time": pandas.date_range("2024-01-01", periods=100, freq="s", tz="UTC"),
                              "who": ["a", "b"] * 50, "v": [float(n) for n in range(100)]})
    client.write(frame, data_frame_measurement_name="frames", data_frame_tag_columns=["who"],
                 data_frame_timestamp_column="time")
    assert client.query("SELECT count(*) AS n FROM frames").to_pylist() == [{"n": 100}]

with connect(WriteOptions(batch_size=100, flush_interval=50)) as client:
    for n in range(30, 1030):
        client.write(point(n), write_precision="s")
with connect(SYNCHRONOUS) as client:
    assert client.query("SELECT count(*) AS n FROM home").to_pylist() == [{"n": 1031}]
