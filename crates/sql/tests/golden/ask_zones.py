#!/usr/bin/env python3
"""Makes zones.tsv anew: asks PostgreSQL 15 what expressions of times are in a session's zone. Needs psql
and a server:

    PGHOST=… PGPORT=… PGUSER=… ./ask_zones.py
"""
import datetime
import pathlib
import subprocess

here = pathlib.Path(__file__).parent
UTC = datetime.timezone.utc
SHOWN = "'YYYY-MM-DD HH24:MI:SS.US'"

# Changes of clocks, in UTC: forward and back; half an hour; a day left out; Ramadan; the day's beginning.
CHANGES = {
    "Europe/Berlin": ["2024-03-31 01:00", "2024-10-27 01:00"],
    "America/New_York": ["2024-03-10 07:00", "2024-11-03 06:00"],
    "Australia/Lord_Howe": ["2024-10-05 15:30", "2024-04-06 15:00"],
    "America/St_Johns": ["2011-03-13 03:31", "2010-11-07 02:31"],
    "Africa/Casablanca": ["2023-03-19 02:00", "2023-04-23 02:00"],
    "Pacific/Apia": ["2011-12-30 10:00", "2011-04-02 14:00"],
    "Asia/Kathmandu": ["1985-12-31 18:30"],
}
STEPS = [-1441, -91, -60, -31, -1, 0, 1, 29, 30, 59, 60, 61, 1440]
FORMS = ["+02", "-02", "+02:30", "UTC+3", "UTC-3", "utc", "EST5EDT", "EST5", "est", "EDT", "CEST", "MSK", "X+3", "<+02>-2", "europe/berlin",
         "Europe/Berlinn", "", "2", "-7", "CET-1CEST", "CET-1CEST,M3.5.0,M10.5.0/3", "GMT", "Z", "zulu", "Etc/GMT+5", "FOO-5:30", "US/Pacific",
         "PST8PDT", "nz", "IST", "Asia/Calcutta", "LMT", "BST", "EAT", "ABC3DEF2", "+0530", "-", "local"]


def text(moment):
    return moment.strftime("%Y-%m-%d %H:%M:%S")


cases = []
for zone, changes in CHANGES.items():
    for change in changes:
        at = datetime.datetime.strptime(change, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        for step in STEPS:
            moment = at + datetime.timedelta(minutes=step, seconds=7 if step % 2 else 0)
            utc = f"TIMESTAMPTZ '{text(moment)}Z'"
            cases.append(("UTC", f"to_char({utc} AT TIME ZONE '{zone}', {SHOWN})"))
            cases.append((zone, f"({utc})::text"))
            cases.append((zone, f"date_trunc('hour', {utc})::text"))
            cases.append((zone, f"date_trunc('day', {utc})::text"))
            cases.append((zone, f"extract(hour from {utc})::text"))
            if step in (-91, -1, 0, 30, 1440):
                for unit in ("week", "month", "quarter", "year", "minute"):
                    cases.append((zone, f"date_trunc('{unit}', {utc})::text"))
                for by in ("1 day", "1 month", "36 hours", "1 month 1 day 1 hour"):
                    cases.append((zone, f"({utc} + INTERVAL '{by}')::text"))
                    cases.append((zone, f"({utc} - INTERVAL '{by}')::text"))
                cases.append((zone, f"to_char(({utc})::timestamp, {SHOWN})"))
                cases.append((zone, f"to_char({utc}, 'YYYY-MM-DD HH24:MI:SS TZ OF')"))
                cases.append((zone, f"({utc})::date::text"))
                cases.append(("UTC", f"extract(hour from {utc} AT TIME ZONE '{zone}')::text"))
                cases.append(("UTC", f"date_trunc('day', {utc}, '{zone}')::text"))
                cases.append(("UTC", f"date_trunc('hour', {utc}, '{zone}')::text"))
                for part in ("minute", "dow", "doy", "timezone", "timezone_hour", "timezone_minute"):
                    cases.append((zone, f"extract({part} from {utc})::int::text"))
                cases.append((zone, f"extract(epoch from {utc})::bigint::text"))
        # On the wall clock, before the change and after it.
        for offset in {"Europe/Berlin": [1, 2], "America/New_York": [-5, -4], "Australia/Lord_Howe": [10.5, 11], "America/St_Johns": [-3.5, -2.5],
                       "Africa/Casablanca": [0, 1], "Pacific/Apia": [-10, -11, 14], "Asia/Kathmandu": [5.5, 5.75]}[zone]:
            for step in STEPS:
                wall = at + datetime.timedelta(minutes=step + offset * 60)
                cases.append(("UTC", f"(TIMESTAMP '{text(wall)}' AT TIME ZONE '{zone}')::text"))
                cases.append((zone, f"(TIMESTAMPTZ '{text(wall)}')::text"))
                if step in (-91, -1, 0, 30):
                    cases.append((zone, f"(TIMESTAMP '{text(wall)}')::timestamptz::text"))
                    cases.append((zone, f"(TIMESTAMP '{text(wall)}' < TIMESTAMPTZ '{text(at)}Z')::text"))
                    cases.append((zone, f"(TIMESTAMP '{text(wall)}' = TIMESTAMPTZ '{text(wall)}')::text"))
        day = text(at)[:10]
        cases.append((zone, f"(DATE '{day}')::timestamptz::text"))
        cases.append((zone, f"(DATE '{day}' < TIMESTAMPTZ '{text(at)}Z')::text"))
        cases.append((zone, f"to_char(DATE '{day}' AT TIME ZONE 'UTC', {SHOWN})"))
        cases.append(("UTC", f"(TIMESTAMP '{text(at)}' AT TIME ZONE 'UTC' AT TIME ZONE '{zone}' AT TIME ZONE '{zone}')::text"))
for form in FORMS:
    quoted = form.replace("'", "''")
    cases.append(("UTC", f"to_char(TIMESTAMPTZ '2014-07-01 12:00Z' AT TIME ZONE '{quoted}', {SHOWN})"))
    cases.append(("Asia/Kolkata", f"(TIMESTAMP '2014-01-01 12:00' AT TIME ZONE '{quoted}')::text"))
    if form not in ("-", "local", ""):
        cases.append((form, "(TIMESTAMPTZ '2014-07-01 12:00Z')::text"))
for interval in ("2 hours 30 min", "-3:00", "00:00:30", "1 day", "1 month"):
    cases.append(("UTC", f"to_char(TIMESTAMPTZ '2014-07-01 12:00Z' AT TIME ZONE INTERVAL '{interval}', {SHOWN})"))
    cases.append(("UTC", f"(timezone(INTERVAL '{interval}', TIMESTAMP '2014-07-01 12:00'))::text"))

FUNCTION = """
CREATE OR REPLACE FUNCTION pg_temp.asked(zone text, what text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  PERFORM set_config('timezone', 'UTC', false);
  PERFORM set_config('timezone', zone, false);
  EXECUTE 'SELECT ' || what INTO answer;
  RETURN answer;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
"""
quoted = lambda value: "'" + value.replace("'", "''") + "'"
sql = FUNCTION + "\n".join(f"SELECT pg_temp.asked({quoted(zone)}, {quoted(what)});" for zone, what in cases)
done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", "postgres"], input=sql, capture_output=True, text=True, check=True)
answers = done.stdout.splitlines()
assert len(answers) == len(cases), (len(answers), len(cases))
with open(here / "zones.tsv", "w") as out:
    out.write("# session's zone, expression, PostgreSQL 15's answer or SQLSTATE\n")
    seen = set()
    for (zone, what), answer in zip(cases, answers):
        if (zone, what) not in seen:
            seen.add((zone, what))
            out.write(f"{zone}\t{what}\t{answer}\n")
