#!/usr/bin/env python3
"""Makes column_names.tsv anew: asks PostgreSQL 15 what the columns of questions are called. Needs psql
and a server:

    PGHOST=… PGPORT=… PGUSER=… ./ask_column_names.py
"""
import pathlib
import subprocess

here = pathlib.Path(__file__).parent
TABLE = 'BEGIN; CREATE TABLE public.t (time TIMESTAMP, dev TEXT, v DOUBLE PRECISION, n INT, "Cap" INT);'

# Of one column each, over the table.
EXPRESSIONS = """
1
-1
'a'
NULL
TRUE
1.5e3
v
V
"Cap"
t.v
(t.v)
public.t.v
-v
+v
v + 1
v > 1 AND n IS NULL
NOT (v > 1)
v IS NOT NULL
(v > 1) IS TRUE
n IS DISTINCT FROM 1
v BETWEEN 1 AND 2
n IN (1, 2)
dev LIKE 'a%'
dev ILIKE 'a%'
dev SIMILAR TO 'a'
dev ~ 'a'
dev || 'x'
1 = ANY (ARRAY[1])
1 < ALL (ARRAY[1])
n IN (SELECT 1)
count(*)
COUNT(DISTINCT v)
"count"(v)
avg(v) FILTER (WHERE v > 1)
sum(v) + 1
max(v)::int
row_number() OVER ()
rank() OVER (ORDER BY v)
lag(v, 1) OVER (PARTITION BY dev ORDER BY time)
percentile_cont(0.5) WITHIN GROUP (ORDER BY v)
upper(dev)
pg_catalog.upper(dev)
date_trunc('hour', time)
date_part('hour', time)
extract(hour FROM time)
extract(epoch FROM time)::int
to_char(time, 'YYYY')
now()
current_timestamp
localtimestamp
current_date
current_user
current_schema
version()
v::int
v::int::text
(v)::int
t.v::int
(v + 1)::int
-v::int
1::int
1::integer
1::bigint
1::int8
1::smallint
CAST(1 AS double precision)
1::real
1::float8
1::float(10)
1::float
1::decimal(5, 2)
1::numeric
'a'::text
'a'::varchar
'a'::varchar(3)
'a'::character varying(3)
'a'::char(3)
'a'::character
't'::boolean
't'::bool
'2024-01-01'::date
'2024-01-01'::timestamp
'2024-01-01'::timestamp(3)
'2024-01-01'::timestamptz
'2024-01-01'::timestamp with time zone
'2024-01-01'::timestamp without time zone
'12:00'::time
'1 day'::interval
'a'::bytea
'{1,2}'::int[]
'{a}'::text[]
't'::regclass
'int4'::regtype
NULL::int
DATE '2024-01-01'
TIMESTAMP '2024-01-01 00:00'
TIMESTAMPTZ '2024-01-01 00:00Z'
INTERVAL '1 day'
INTERVAL '1' DAY
time + INTERVAL '1 day'
CASE WHEN v > 1 THEN 1 END
CASE WHEN v > 1 THEN 1 ELSE v END
CASE WHEN v > 1 THEN v ELSE 2 END
CASE v WHEN 1 THEN 1 ELSE n + 1 END
CASE WHEN v > 1 THEN 1 ELSE 2::int END
CASE WHEN v > 1 THEN 1 ELSE n::int END
CASE WHEN v > 1 THEN 1 ELSE max(v) OVER () END
(CASE WHEN v > 1 THEN 1 END)::int
coalesce(v, 1)
coalesce(v, 1)::int
greatest(v, 1)
least(v, 1)
nullif(v, 1)
abs(v)
round(v::numeric, 2)
ceil(v)
ceiling(v)
floor(v)
substring(dev, 2)
substring(dev FROM 2)
substring(dev FROM 2 FOR 1)
substr(dev, 2)
trim(dev)
trim(LEADING 'a' FROM dev)
trim(TRAILING 'a' FROM dev)
trim(BOTH 'a' FROM dev)
btrim(dev)
position('a' IN dev)
strpos(dev, 'a')
overlay(dev PLACING 'x' FROM 1 FOR 1)
replace(dev, 'a', 'b')
time AT TIME ZONE 'UTC'
(time AT TIME ZONE 'UTC')::date
dev COLLATE "C"
(dev || 'x') COLLATE "C"
ARRAY[1, 2]
ARRAY[v]
ARRAY[1, 2]::bigint[]
(ARRAY[1, 2])[1]
ARRAY(SELECT 1)
array_agg(n)
string_agg(dev, ',')
bool_and(v > 1)
stddev(v)
variance(v)
EXISTS (SELECT 1)
NOT EXISTS (SELECT 1)
(SELECT 1)
(SELECT 1)::int
(SELECT 1 AS a)
(SELECT 1 AS "A b")
(SELECT max(v) FROM t)
(SELECT v FROM t LIMIT 1)
(SELECT count(*) FROM t) + 1
CASE WHEN v > 1 THEN 1 ELSE (SELECT 2) END
(VALUES (1))
1 AS "A"
1 AS A
1 a
v AS v
""".strip().splitlines()

# Whole questions.
QUESTIONS = """
SELECT count(*), count(v) FROM t
SELECT count(*), 1, 2, 'x', count(v), 1 FROM t
SELECT 1 AS x, 2 AS x, v AS x FROM t
SELECT v, v, t.v, v::int, v AS v FROM t
SELECT a.time, b.time, a.v FROM t AS a JOIN t AS b ON a.time = b.time
SELECT * FROM t
SELECT *, 1 FROM t
SELECT 1, * FROM t
SELECT time, *, count(*) OVER (), count(v) OVER () FROM t
SELECT v::int, * FROM t
SELECT a.v, b.*, max(a.v) OVER () FROM t AS a JOIN t AS b ON a.time = b.time
SELECT a.*, 1, b.* FROM t AS a JOIN t AS b ON a.time = b.time
SELECT count(*) FROM t UNION ALL SELECT 1 AS a
SELECT 1 UNION SELECT 2 ORDER BY 1
(SELECT max(v) FROM t) UNION ALL (SELECT min(v) FROM t)
SELECT max(v) FROM t UNION ALL SELECT min(v) FROM t ORDER BY max
VALUES (1, 2)
SELECT * FROM (VALUES (1, 'a')) AS x
SELECT * FROM (VALUES (1, 'a')) AS x (n, s)
SELECT count FROM (SELECT count(*) FROM t) AS x
SELECT x.count, x.max FROM (SELECT count(*), max(v) FROM t) AS x
SELECT * FROM (SELECT count(*), max(v), 1 FROM t) AS x
SELECT * FROM (SELECT count(*), count(v), 1, 2 FROM t) AS x
SELECT * FROM (SELECT v, v FROM t) AS x
SELECT * FROM (SELECT 1 AS a, 2 AS a) AS x
SELECT "?column?" + 1, "?column?" FROM (SELECT 1) AS x
SELECT x.v FROM (SELECT v::int FROM t) AS x
SELECT a, b FROM (SELECT count(*), max(v) FROM t) AS x (a, b)
SELECT date_trunc, avg FROM (SELECT date_trunc('hour', time), avg(v) FROM t GROUP BY 1) AS x ORDER BY date_trunc
SELECT x.max, y.max FROM (SELECT max(v) FROM t) AS x, (SELECT max(n) FROM t) AS y
SELECT "case", "array", "row_number" FROM (SELECT CASE WHEN v > 1 THEN 1 END, ARRAY[1], row_number() OVER () FROM t) AS x
WITH q AS (SELECT count(*), max(v) FROM t) SELECT count, max FROM q
WITH q AS (SELECT count(*), max(v) FROM t) SELECT * FROM q
WITH q (a) AS (SELECT count(*) FROM t) SELECT a + 1, a FROM q
WITH a AS (SELECT max(v) FROM t), b AS (SELECT max + 1 AS m, max FROM a) SELECT * FROM b
SELECT (SELECT max FROM (SELECT max(v) FROM t) AS y) FROM t
SELECT sum(count) FROM (SELECT count(*) FROM t UNION ALL SELECT 5) AS x
SELECT max FROM (SELECT dev, max(v) FROM t GROUP BY dev HAVING max(v) > 0) AS x
SELECT dev, count(*) FROM t GROUP BY dev ORDER BY count
SELECT dev, count(*) FROM t GROUP BY dev ORDER BY count DESC, dev
SELECT date_trunc('hour', time), count(*) FROM t GROUP BY date_trunc ORDER BY date_trunc
SELECT upper(dev), count(*) FROM t GROUP BY upper HAVING count(*) > 0
SELECT *, row_number() OVER () FROM t ORDER BY row_number
SELECT x.row_number FROM (SELECT *, row_number() OVER () FROM t) AS x
SELECT l.max FROM t, LATERAL (SELECT max(n) FROM t AS u WHERE u.dev = t.dev) AS l
SELECT DISTINCT upper(dev) FROM t ORDER BY upper
SELECT * FROM generate_series(1, 2)
SELECT * FROM generate_series(1, 2) AS g
SELECT * FROM generate_series(1, 2) AS g (i)
SELECT generate_series FROM generate_series(1, 2)
SELECT g FROM generate_series(1, 2) AS g
SELECT * FROM unnest(ARRAY[1, 2])
SELECT * FROM unnest(ARRAY[1, 2]) AS u
SELECT u FROM unnest(ARRAY[1, 2]) AS u
SELECT unnest(ARRAY[1, 2])
SELECT generate_series(1, 2)
""".strip().splitlines()

lines = []
for question in [f"SELECT {expression} FROM t" for expression in EXPRESSIONS] + QUESTIONS:
    if "GROUP BY" not in question and question.startswith("SELECT current"):
        question = question.removesuffix(" FROM t")
    script = f"{TABLE}\n{question} \\gdesc\n"
    asked = subprocess.run(["psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", "postgres"], input=script,
                           capture_output=True, text=True)
    if asked.returncode:
        raise SystemExit(f"{question}: {asked.stderr}")
    names = [line.split("\t")[0] for line in asked.stdout.splitlines()]
    lines.append("\t".join([question, *names]))
head = "# What columns are called, as PostgreSQL 15 says (ask_column_names.py): question, names.\n"
(here / "column_names.tsv").write_text(head + "\n".join(lines) + "\n")
