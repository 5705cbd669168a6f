"""What a program gets through ADBC's driver for PostgreSQL, which reads the catalog's types first."""

import os

import adbc_driver_postgresql.dbapi

uri = f"postgresql://me@127.0.0.1:{os.environ['MARIGRAM_PORT']}/main"
with adbc_driver_postgresql.dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE adbc (time TIMESTAMPTZ, dev TEXT TAG, v DOUBLE, n BIGINT)")
    cursor.execute("INSERT INTO adbc VALUES ('2026-07-01 12:00Z', 'a', 1.5, 7), ('2026-07-01 13:00Z', 'b', 2.5, NULL)")
    cursor.execute("SELECT * FROM adbc ORDER BY time")
    table = cursor.fetch_arrow_table()
    assert table.column_names == ["time", "dev", "v", "n"], table.column_names
    assert table.column("v").to_pylist() == [1.5, 2.5], table
    assert table.column("n").to_pylist() == [7, None], table
    assert table.column("dev").to_pylist() == ["a", "b"], table
    times = [time.isoformat() for time in table.column("time").to_pylist()]
    assert times == ["2026-07-01T12:00:00+00:00", "2026-07-01T13:00:00+00:00"], times
