"""What asyncpg does: it asks the server for types that it does not know, and waits for the answer."""

import asyncio
import os
import uuid

import asyncpg

ARRAYS = (
    ("SELECT ARRAY[1.5::float8, 2.5]", [1.5, 2.5]),
    ("SELECT ARRAY[1::bigint, NULL]", [1, None]),
    ("SELECT ARRAY['a', NULL]", ["a", None]),
    ("SELECT ARRAY[true, false]", [True, False]),
)
PARAMETERS = (
    ("SELECT 1 = ANY($1::int[])", [1, 2], True),
    ("SELECT 'c' = ANY($1)", ["a", "b"], False),
    ("SELECT $1::float8[]", [1.5, None], [1.5, None]),
    ("SELECT $1::bool[]", [], []),
)


async def main() -> None:
    port = int(os.environ["MARIGRAM_PORT"])
    connection = await asyncpg.connect(host="127.0.0.1", port=port, user="me", database="main")
    for sql, expected in ARRAYS:
        assert await connection.fetchval(sql) == expected, sql
    for sql, value, expected in PARAMETERS:
        assert await connection.fetchval(sql, value) == expected, sql
    async with connection.transaction():
        cursor = await connection.cursor("SELECT i FROM generate_series(1, 10) AS g(i)")
        assert [row["i"] for row in await cursor.fetch(4)] == [1, 2, 3, 4]
    await connection.execute("CREATE TABLE asyncpg_parts (id UUID PRIMARY KEY, info JSONB)")
    own = uuid.uuid4()
    await connection.execute("INSERT INTO asyncpg_parts VALUES ($1, $2)", own, '{"a": 1}')
    row = await connection.fetchrow("SELECT id, info FROM asyncpg_parts WHERE id = $1", own)
    assert (row["id"], row["info"]) == (own, '{"a": 1}'), row
    await connection.execute("DROP TABLE asyncpg_parts")
    await connection.close()
    await use_pool(port)


async def use_pool(port: int) -> None:
    """A pool resets each connection before it lends it again."""
    pool = asyncpg.create_pool(
        host="127.0.0.1", port=port, user="me", database="main", min_size=1, max_size=1
    )
    async with pool:
        for number in range(3):
            async with pool.acquire() as connection:
                assert await connection.fetchval("SELECT $1::int", number) == number


asyncio.run(asyncio.wait_for(main(), 60))
