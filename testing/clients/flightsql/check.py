"""What adbc_driver_flightsql and pyarrow do: statements, parameters, metadata, ingestion, pandas."""

import datetime
import os

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pandas
import pyarrow
import pyarrow.flight
from adbc_driver_flightsql import DatabaseOptions

uri = f"grpc://127.0.0.1:{os.environ['MARIGRAM_FLIGHT_PORT']}"
database = {f"{DatabaseOptions.RPC_CALL_HEADER_PREFIX.value}database": "adbc"}

with flight_sql.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute("CREATE DATABASE IF NOT EXISTS adbc")

with flight_sql.connect(uri, db_kwargs=database, autocommit=True) as connection:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE readings (time TIMESTAMP, device STRING TAG, value DOUBLE FIELD, n BIGINT FIELD)")
        cursor.executemany(
            "INSERT INTO readings VALUES ($1, $2, $3, $4)",
            [(datetime.datetime(2024, 1, 1, 0, 0, second), f"d{second % 3}", second / 2, second) for second in range(30)],
        )
        cursor.execute("SELECT count(*), sum(n) FROM readings")
        assert cursor.fetchall() == [(30, 435)], cursor.fetchall()
        cursor.execute("SELECT device, value FROM readings WHERE device = $1 AND n > $2 ORDER BY n", ("d1", 20))
        assert cursor.fetchall() == [("d1", 11.0), ("d1", 12.5), ("d1", 14.0)]
        cursor.execute("INSERT INTO readings VALUES ($1, $2, $3, $4)", (datetime.datetime(2024, 1, 2), "null", None, 7))
        cursor.execute("SELECT value, n FROM readings WHERE device = $1", ("null",))
        assert cursor.fetchall() == [(None, 7)]
        cursor.execute("DELETE FROM readings WHERE device = 'null'")
        cursor.execute("SELECT * FROM readings ORDER BY time")
        table = cursor.fetch_arrow_table()
        assert table.num_rows == 30 and pyarrow.types.is_dictionary(table.schema.field("device").type), table.schema
        cursor.execute("SELECT device, avg(value) AS mean FROM readings GROUP BY device ORDER BY device")
        frame = cursor.fetch_df()
        assert list(frame["device"]) == ["d0", "d1", "d2"] and frame["mean"].iloc[0] == 6.75, frame
        for wrong, message in [
            ("SELECT nothing FROM readings", "nothing"),
            ("CREATE TABLE readings (time TIMESTAMP, v DOUBLE)", "readings"),
        ]:
            try:
                cursor.execute(wrong)
                cursor.fetchall()
            except adbc_driver_manager.Error as error:
                assert message in str(error), error
            else:
                raise AssertionError(f"{wrong} is no error")

    # A new table from Arrow, more rows into it, and in its place another one.
    times = pyarrow.array([datetime.datetime(2024, 1, 1, 0, minute) for minute in range(50)], pyarrow.timestamp("us"))
    fresh = pyarrow.table({
        "time": times,
        "site": pyarrow.array(["north", "south"] * 25).dictionary_encode(),
        "temp": pyarrow.array([minute / 10 for minute in range(50)]),
    })
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest("weather", fresh, mode="create") == 50
        try:
            cursor.adbc_ingest("weather", fresh, mode="create")
        except adbc_driver_manager.Error as error:
            assert "exists already" in str(error), error
        else:
            raise AssertionError("a table was made twice")
        assert cursor.adbc_ingest("weather", fresh.to_batches()[0], mode="append") == 50
        cursor.execute("SELECT count(*), count(DISTINCT site) FROM weather")
        assert cursor.fetchall() == [(50, 2)], "the same rows replace each other"
        assert cursor.adbc_ingest("weather", fresh.slice(0, 10), mode="replace") == 10
        cursor.execute("SELECT count(*) FROM weather")
        assert cursor.fetchone() == (10,)

    # A frame of pandas.
    frame = pandas.DataFrame({"time": pandas.date_range("2024-01-01", periods=100, freq="s"),
                              "who": ["a", "b"] * 50, "v": range(100)})
    with connection.cursor() as cursor:
        cursor.adbc_ingest("frames", pyarrow.Table.from_pandas(frame), mode="create")
        cursor.execute("SELECT who, max(v) FROM frames GROUP BY who ORDER BY who")
        assert cursor.fetchall() == [("a", 98), ("b", 99)]

    # Metadata.
    objects = connection.adbc_get_objects(depth="tables", catalog_filter="adbc").read_all().to_pylist()
    schemas = [schema for found in objects for schema in found["catalog_db_schemas"]]
    tables = [table["table_name"] for schema in schemas for table in schema["db_schema_tables"]]
    assert sorted(tables) == ["frames", "readings", "weather"], objects
    columns = connection.adbc_get_objects(depth="all", catalog_filter="adbc", table_name_filter="weather")
    columns = columns.read_all().to_pylist()[0]["catalog_db_schemas"][0]["db_schema_tables"][0]["table_columns"]
    assert [column["column_name"] for column in columns] == ["time", "site", "temp"], columns
    schema = connection.adbc_get_table_schema("weather")
    assert schema.names == ["time", "site", "temp"], schema
    assert connection.adbc_get_table_types() == ["BASE TABLE", "VIEW"]
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "Marigram", info

# pyarrow alone: a path, a ticket of InfluxDB, a handshake.
client = pyarrow.flight.FlightClient(uri)
client.authenticate_basic_token("anyone", "anything")
descriptor = pyarrow.flight.FlightDescriptor.for_path("adbc", "plain")
writer, _ = client.do_put(descriptor, fresh.schema)
with writer:
    writer.write_table(fresh)
ticket = pyarrow.flight.Ticket(b'{"database": "adbc", "sql_query": "SELECT count(*) AS n FROM plain", "query_type": "sql"}')
assert client.do_get(ticket).read_all().to_pylist() == [{"n": 50}]
