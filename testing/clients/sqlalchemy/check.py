"""What SQLAlchemy and pandas do: reflect, insert and select, make tables of frames and read them back."""

import datetime
import os

import pandas
import sqlalchemy
from sqlalchemy import func, select, text
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import Session

engine = sqlalchemy.create_engine(f"postgresql+psycopg://me@127.0.0.1:{os.environ['MARIGRAM_PORT']}/main")

with engine.begin() as connection:
    connection.execute(text("CREATE TABLE readings (time TIMESTAMP, dev TEXT TAG, v DOUBLE PRECISION, n BIGINT)"))

# Reflection.
inspector = sqlalchemy.inspect(engine)
assert "readings" in inspector.get_table_names()
assert inspector.has_table("readings") and not inspector.has_table("nothing")
assert "public" in inspector.get_schema_names()
columns = inspector.get_columns("readings")
assert [column["name"] for column in columns] == ["time", "dev", "v", "n"], columns
assert isinstance(columns[0]["type"], sqlalchemy.types.TIMESTAMP), columns
assert isinstance(columns[2]["type"], sqlalchemy.types.Float), columns
assert isinstance(columns[3]["type"], sqlalchemy.types.BIGINT), columns
key = inspector.get_pk_constraint("readings")
assert key["constrained_columns"] == ["dev", "time"] and key["name"] == "readings_pkey", key
assert inspector.get_table_comment("readings") == {"text": None}
assert inspector.get_view_names() == [] and inspector.get_enums() == [] and inspector.get_sequence_names() == []
for nothing in ("get_indexes", "get_foreign_keys", "get_unique_constraints", "get_check_constraints"):
    assert getattr(inspector, nothing)("readings") == [], nothing
readings = sqlalchemy.Table("readings", sqlalchemy.MetaData(), autoload_with=engine)
assert readings.columns.keys() == ["time", "dev", "v", "n"]

# Core.
with engine.begin() as connection:
    rows = [
        {"time": datetime.datetime(2024, 1, day), "dev": f"d{day}", "v": day * 1.5, "n": day} for day in range(1, 6)
    ]
    connection.execute(readings.insert(), rows)
    query = select(readings.c.dev, func.count()).where(readings.c.n.in_([1, 3])).group_by(readings.c.dev)
    assert connection.execute(query.order_by(readings.c.dev)).all() == [("d1", 1), ("d3", 1)]
    assert connection.execute(select(func.max(readings.c.v))).scalar_one() == 7.5
    # A subquery that belongs to each row.
    newest = readings.alias()
    its_note = select(newest.c.v).where(newest.c.dev == readings.c.dev).scalar_subquery()
    query = select(readings.c.dev, its_note).order_by(readings.c.dev).limit(2)
    assert connection.execute(query).all() == [("d1", 1.5), ("d2", 3.0)]

# The ORM maps what it finds: the tags and the time are the key.
base = automap_base()
base.prepare(autoload_with=engine)
reading = base.classes.readings
with Session(engine) as session:
    found = session.get(reading, ("d2", datetime.datetime(2024, 1, 2)))
    assert found.n == 2 and found.v == 3.0
    session.add(reading(time=datetime.datetime(2024, 1, 6), dev="d6", v=9.0, n=6))
    session.commit()
    assert session.scalars(select(reading.n).order_by(reading.n.desc())).first() == 6

# pandas.
hours = pandas.date_range("2024-01-01", periods=3, freq="h")
frame = pandas.DataFrame({"time": hours, "dev": ["a", "b", "a"], "v": [1.0, 2.0, 3.0]})
for exists in ("fail", "append", "replace", "append"):
    frame.to_sql("frame", engine, if_exists=exists, index=False)
back = pandas.read_sql_table("frame", engine)
assert back["v"].tolist() == [1.0, 2.0, 3.0] and back["time"].tolist() == frame["time"].tolist(), back
try:
    frame.to_sql("frame", engine, if_exists="fail", index=False)
    raise AssertionError("the table is there")
except ValueError:
    pass
# An index of times needs none of the database's.
frame.set_index("time").to_sql("indexed", engine)
counted = pandas.read_sql_query("SELECT dev, count(*), max(v) FROM indexed GROUP BY dev ORDER BY dev", engine)
assert counted.columns.tolist() == ["dev", "count", "max"], counted
assert counted["count"].tolist() == [2, 1]
# A frame without times becomes a reference table.
frame[["dev", "v"]].to_sql("timeless", engine, index=False)
assert pandas.read_sql_table("timeless", engine)["v"].tolist() == [1.0, 2.0, 3.0]
# An index of the frame is a column; an index in the database is accepted, and not needed.
frame.to_sql("numbered", engine)
assert pandas.read_sql_table("numbered", engine)["index"].tolist() == [0, 1, 2]
