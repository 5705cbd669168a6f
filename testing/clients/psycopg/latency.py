"""Measures prepared statements with parameters: what one costs from a driver's call to its rows.

Asks one device and one hour of standard set S (database `db`, table `s`), another one each time, over
PostgreSQL's protocol in binary. The database is made by

    cargo run --release -p marigram-engine --example ingest -- DIR 8

and served by `marigram serve --data DIR`. Then: `python3 latency.py [PORT]`.
"""

import datetime
import random
import statistics
import sys
import time

import psycopg

ROUNDS = 2000
WARM_UP = 100
DEVICES = 1000
HOUR_S = 3600
LAST_START_S = 6000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
WHERE = "FROM s WHERE devname = %s AND time >= %s AND time < %s"
STATEMENTS = {
    "by minute": f"SELECT time_bucket('1m', time) AS m, avg(temperature) {WHERE} GROUP BY m ORDER BY m",
    "aggregate": f"SELECT max(temperature), count(*) {WHERE}",
    "ten rows": f"SELECT time, temperature {WHERE} ORDER BY time LIMIT 10",
}


def parameters(drawn: random.Random) -> tuple:
    start = EPOCH + datetime.timedelta(seconds=drawn.randrange(LAST_START_S))
    end = start + datetime.timedelta(seconds=HOUR_S)
    return f"device_{drawn.randrange(DEVICES):06d}", start, end


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 5432
    drawn = random.Random(1)
    with psycopg.connect(host="127.0.0.1", port=port, dbname="db", user="u", autocommit=True) as connection:
        cursor = connection.cursor(binary=True)
        for name, sql in STATEMENTS.items():
            took_ms = []
            for _ in range(ROUNDS):
                values = parameters(drawn)
                started = time.perf_counter()
                cursor.execute(sql, values, prepare=True)
                cursor.fetchall()
                took_ms.append((time.perf_counter() - started) * 1e3)
            took_ms = sorted(took_ms[WARM_UP:])
            p99 = took_ms[len(took_ms) * 99 // 100]
            print(f"{name}: median {statistics.median(took_ms):.3f} ms, 99 of 100 {p99:.3f} ms")


if __name__ == "__main__":
    main()
