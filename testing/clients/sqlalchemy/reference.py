"""SQLAlchemy's ORM over reference tables: create, relate, change, reflect."""

import os

import pandas
import sqlalchemy
from sqlalchemy import CheckConstraint, ForeignKey, Numeric, String, UniqueConstraint, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

engine = sqlalchemy.create_engine(f"postgresql+psycopg://me@127.0.0.1:{os.environ['MARIGRAM_PORT']}/main")


class Base(DeclarativeBase):
    pass


class Site(Base):
    __tablename__ = "sites"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(30), unique=True)
    pumps: Mapped[list["Pump"]] = relationship(back_populates="site", cascade="all, delete-orphan")


class Pump(Base):
    __tablename__ = "pumps"
    __table_args__ = (UniqueConstraint("site_id", "label"), CheckConstraint("power > 0", name="has_power"))
    id: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str]
    power: Mapped[float] = mapped_column(Numeric(10, 3), server_default="1.5")
    is_on: Mapped[bool] = mapped_column(default=False, index=True)
    site_id: Mapped[int] = mapped_column(ForeignKey("sites.id", ondelete="CASCADE"))
    site: Mapped[Site] = relationship(back_populates="pumps")


Base.metadata.create_all(engine)
Base.metadata.create_all(engine)

with Session(engine) as session:
    north = Site(name="north", pumps=[Pump(label="a", power=2), Pump(label="b")])
    session.add_all([north, Site(name="south")])
    session.commit()
    assert north.id == 1 and [pump.label for pump in north.pumps] == ["a", "b"]
    assert float(north.pumps[1].power) == 1.5
    north.pumps[0].is_on = True
    session.flush()
    session.rollback()
    assert north.pumps[0].is_on is False
    query = select(Site.name, func.count(Pump.id)).outerjoin(Pump).group_by(Site.name).order_by(Site.name)
    assert session.execute(query).all() == [("north", 2), ("south", 0)]
    with session.begin_nested():
        session.add(Site(name="west"))
    try:
        with session.begin_nested():
            session.add(Site(name="west"))
    except sqlalchemy.exc.IntegrityError as error:
        assert "sites_name_key" in str(error.orig), error
    session.commit()
    upsert = insert(Site).values([{"name": "west"}, {"name": "east"}])
    upsert = upsert.on_conflict_do_update(index_elements=["name"], set_={"name": upsert.excluded.name + "!"})
    assert sorted(session.scalars(upsert.returning(Site.name))) == ["east", "west!"]
    session.delete(session.get(Site, 1))
    session.commit()
    assert session.scalar(select(func.count()).select_from(Pump)) == 0

inspector = sqlalchemy.inspect(engine)
assert {"sites", "pumps"} <= set(inspector.get_table_names())
columns = {column["name"]: column for column in inspector.get_columns("pumps")}
assert list(columns) == ["id", "label", "power", "is_on", "site_id"], columns
assert not columns["label"]["nullable"] and str(columns["power"]["type"]) == "NUMERIC(10, 3)", columns
assert inspector.get_pk_constraint("pumps")["constrained_columns"] == ["id"]
(key,) = inspector.get_foreign_keys("pumps")
assert key["referred_table"] == "sites" and key["constrained_columns"] == ["site_id"], key
assert key["options"].get("ondelete") == "CASCADE", key
(unique,) = inspector.get_unique_constraints("pumps")
assert unique["column_names"] == ["site_id", "label"], unique
assert [index["column_names"] for index in inspector.get_indexes("pumps") if not index["unique"]] == [["is_on"]]
(check,) = inspector.get_check_constraints("pumps")
assert check["name"] == "has_power" and "power" in check["sqltext"], check
reflected = sqlalchemy.MetaData()
reflected.reflect(engine, only=["pumps", "sites"])
assert reflected.tables["pumps"].c.site_id.references(reflected.tables["sites"].c.id)

# A frame without times.
frame = pandas.DataFrame({"code": ["x", "y"], "limit": [1.5, 2.5], "n": [1, 2]})
frame.to_sql("limits", engine, index=False)
back = pandas.read_sql_table("limits", engine)
assert back.equals(frame), back

Base.metadata.drop_all(engine)
with engine.begin() as connection:
    connection.exec_driver_sql("DROP TABLE limits")
assert "pumps" not in sqlalchemy.inspect(engine).get_table_names()
