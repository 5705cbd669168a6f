#!/usr/bin/env python3
"""Makes the golden files anew: asks PostgreSQL 15 what each text is. Needs psql and a server:

    PGHOST=… PGPORT=… PGUSER=… ./ask.py
"""
import itertools
import pathlib
import random
import subprocess

here = pathlib.Path(__file__).parent
rng = random.Random(15)

ZONES = ["", "Z", "+02", "-0330", "+05:30", " UTC", " Europe/Berlin", " America/New_York", " CET", " pst", " -7", " Asia/Kolkata"]
DATES = ["2014-07-01", "2014-7-1", "2014/07/01", "20140701", "1 July 2014", "July 1, 2014", "Jul 1 2014", "01-Jul-2014",
         "2014-Jul-01", "Jul-01-2014", "7/1/2014", "07/31/14", "2014.182", "2014-02-30", "2014-13-01", "Tue Jul 01 2014",
         "1.7.2014", "2014 July 1", "July 2014", "2014", "14-07-01", "2000-02-29", "1900-02-29", "12/31/69", "12/31/70", "44-03-15"]
TIMES = ["", " 00:00", " 10:15", "T10:15:30", " 10:15:30.5", " 10:15:30.123456", " 24:00", " 24:00:01", " 23:59:60", " 10:15 PM",
         " 12:00 AM", " 12:30 pm", " 13:00 PM", " 0:30 AM", " 25:00", " 10:60", "T101530", " 101530", " 1015", "T10", " 10:15:61", " allballs"]
texts = ["".join(parts) for parts in itertools.product(DATES, TIMES, ZONES)]
texts = rng.sample(texts, 1100)
texts += ["epoch", "infinity-", "", "now and then", "2014-07-01 10:15 Nowhere/City", "2014-07-01 10:15 +16", "2014-07-01  10:15",
          " 2014-07-01 ", "2014-07-01 10:15 UTC UTC", "10:15", "2014-07-01 10:15 10:15", "2014-07-01T", "J2451187",
          "Thursday 2014-07-03", "0044-03-15 BC", "2014-07-01 AD", "2014-07-01;", "2014--07-01", "2014-07-01-", "1e3", "12"]
# Around the changes of clocks of six zones.
for zone, changes in {"Europe/Berlin": ["2024-03-31 02:00", "2024-10-27 02:00"], "America/New_York": ["2024-03-10 02:00", "2024-11-03 01:00"],
                      "Australia/Lord_Howe": ["2024-10-06 02:00", "2024-04-07 01:30"], "Asia/Kolkata": ["2024-03-31 02:00"],
                      "America/Sao_Paulo": ["2018-11-04 00:00", "2018-02-17 23:00"], "Africa/Casablanca": ["2024-03-10 03:00", "2024-04-14 02:00"]}.items():
    for change in changes:
        day, clock = change.split()
        minutes = int(clock[:2]) * 60 + int(clock[3:])
        for step in (-61, -60, -1, 0, 1, 29, 30, 59, 60, 61):
            at = minutes + step
            if 0 <= at < 1440:
                texts.append(f"{day} {at // 60:02}:{at % 60:02} {zone}")


def ask(sql):
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", "postgres"], input=sql, capture_output=True, text=True, check=True)
    return done.stdout


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


FUNCTION = """
SET timezone = 'Europe/Berlin';
CREATE OR REPLACE FUNCTION pg_temp.asked(kind text, value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  EXECUTE format('SELECT (extract(epoch from %L::%s) * 1000000)::bigint::text', value, kind) INTO answer;
  RETURN answer;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
"""
rows = "\n".join(f"SELECT pg_temp.asked('timestamp', {quoted(t)}) || E'\\t' || pg_temp.asked('timestamptz', {quoted(t)});" for t in texts)
answers = ask(FUNCTION + rows).splitlines()
assert len(answers) == len(texts), (len(answers), len(texts))
with open(here / "times.tsv", "w") as out:
    out.write("# text, microseconds or SQLSTATE as timestamp, and as timestamptz in Europe/Berlin\n")
    for text, answer in zip(texts, answers):
        out.write(f"{text}\t{answer}\n")

FIELDS = ["HH", "HH12", "HH24", "hh24", "MI", "SS", "MS", "US", "FF1", "FF3", "FF6", "SSSS", "AM", "p.m.", "Y,YYY", "YYYY", "YYY", "YY", "Y",
          "IYYY", "IYY", "IY", "I", "BC", "a.d.", "MONTH", "Month", "month", "Mon", "MON", "mon", "MM", "DAY", "Day", "day", "DY", "Dy", "dy", "DDD",
          "IDDD", "DD", "D", "ID", "W", "WW", "IW", "CC", "J", "Q", "RM", "rm", "TZ", "tz", "TZH", "TZM", "OF"]
MARKS = ["-", " ", ":", "/", ", ", "T", '"of"', '"HH"', "", ".", "\\\"", " o'clock ", "Z"]
moments = ["2014-07-01 00:00:00", "2024-02-29 23:59:59.987654", "2024-12-31 12:00:00", "2021-01-03 01:05:09.000001", "1999-12-31 13:14:15.5",
           "2000-01-01 00:30:00", "1970-01-01 00:00:00", "2262-04-11 23:47:16"]
cases = [(moments[0], p) for p in ("YYYY-MM-DD HH24:MI:SS", "FMMonth FMDDth, YYYY", "DDth", "DDTH", "FMDDD", "FMHH12:MI AM", '"YYYY" YYYY')]
for _ in range(900):
    pattern = ""
    for _ in range(rng.randint(1, 4)):
        field = rng.choice(FIELDS)
        pattern += rng.choice(["", "", "FM"]) + field + rng.choice(["", "", "", "th", "TH"]) + rng.choice(MARKS)
    cases.append((rng.choice(moments), pattern))
rows = "\n".join(
    f"SELECT replace(to_char({quoted(m)}::timestamp, {quoted(p)}) || E'\\t' || to_char(timezone('UTC', {quoted(m)}::timestamp), {quoted(p)}), E'\\n', ' ') || E'\\t|';"
    for m, p in cases)
answers = ask("SET timezone = 'Asia/Kolkata';\n" + rows).splitlines()
assert len(answers) == len(cases), (len(answers), len(cases))
with open(here / "to_char.tsv", "w") as out:
    out.write("# time, pattern, as timestamp, as timestamptz in Asia/Kolkata of that time in UTC, a mark\n")
    for (moment, pattern), answer in zip(cases, answers):
        out.write(f"{moment}\t{pattern}\t{answer}\n")

PIECES = ["a", "b", "ab", "%", "_", "(", ")", "|", "*", "+", "?", "{2}", "[ab]", "[^a]", "[a-c]", "\\%", "\\_", ".", "^", "$", "\\\\", "-", "[[:digit:]]", "1", "x\ny", "\\d"]
SUBJECTS = ["", "a", "b", "ab", "aab", "abab", "a.b", "a%b", "a_b", "1", "a1b", "x\ny", "^a$", "a\\b", "a-b", "ba", "aaa", "bbb", "d"]
cases = []
while len(cases) < 900:
    cases.append((rng.choice(SUBJECTS), "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 5)))))
SIMILAR = """
SET standard_conforming_strings = on;
CREATE OR REPLACE FUNCTION pg_temp.similar(value text, pattern text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN (value SIMILAR TO pattern)::text; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
"""
rows = "\n".join(f"SELECT pg_temp.similar({quoted(s)}, {quoted(p)});" for s, p in cases)
answers = ask(SIMILAR + rows).splitlines()
assert len(answers) == len(cases)
with open(here / "similar.tsv", "w") as out:
    out.write("# text, pattern, whether it is similar or SQLSTATE; \\n is a new line, \\\\ a backslash\n")
    for (subject, pattern), answer in zip(cases, answers):
        escape = lambda text: text.replace("\\", "\\\\").replace("\n", "\\n")
        out.write(f"{escape(subject)}\t{escape(pattern)}\t{answer}\n")

# Numbers as text: `f` for a double, `e` for a numeric. A numeric that EEEE rounds up to a power of ten is left
# out: PostgreSQL writes 10.00e+01.
NUMBERS = ["485", "-485", "0", "0.1", "-0.1", "12", "-12", "148.5", "1485", "1234567", "0.004", "-0.004", "2.675", "99.95", "999.5", "5", "123456.789"]
NUMBER_PATTERNS = ["999", "FM999", "9,999", "FM9,999,990.00", "0,000", "9.99", "FM9.99", "0.9", "FM0.9", "FM990.0", "FM999.999", "FM999.990",
                   "S9999", "9999S", "FM9999S", "FMS99.9", "S0.99", "99.9S", "MI999", "999MI", "FM999MI", "999.9MI", "PL999", "999PL", "SG999",
                   "999PR", "FM999PR", "9.9PR", "99.99PR", "999th", "999TH", "FM999th", "000000", "FM000000.00", "99:99", '"x"999"y"9',
                   "$99.00", "99%", "9.99EEEE", "9EEEE", "9990999.9", "FM9990999.9", "9 9 9", "L999", "9S99", "99.", ".99", "FM.99",
                   "9G999D99", "FM9G999G999D09", "99D0", "09.9", "999999999999999999.99"]
asked = [(kind, number, pattern) for kind in "fe" for number in NUMBERS for pattern in NUMBER_PATTERNS
         if not (kind == "e" and "EEEE" in pattern and number in ("99.95", "999.5"))]
types = {"f": "float8", "e": "numeric"}
answers = ask("\n".join(f"SELECT to_char({number}::{types[kind]}, {quoted(pattern)});" for kind, number, pattern in asked)).split("\n")[:-1]
assert len(answers) == len(asked), (len(answers), len(asked))
with open(here / "to_char_numbers.tsv", "w") as out:
    out.writelines("\t".join((*key, answer)) + "\n" for key, answer in zip(asked, answers))

# Times read with patterns. The cases are those of the file; their answers are asked anew.
cases = [line.split("\t")[:2] for line in open(here / "to_timestamp.tsv")]
FUNCTION = """
SET timezone = 'UTC';
CREATE OR REPLACE FUNCTION pg_temp.read(value text, pattern text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN to_timestamp(value, pattern)::text;
EXCEPTION WHEN OTHERS THEN RETURN '!' || SQLSTATE || ': ' || SQLERRM;
END $$;
"""
answers = ask(FUNCTION + "\n".join(f"SELECT pg_temp.read({quoted(text)}, {quoted(pattern)});" for text, pattern in cases)).splitlines()
assert len(answers) == len(cases), (len(answers), len(cases))
with open(here / "to_timestamp.tsv", "w") as out:
    out.writelines("\t".join((*case, answer)) + "\n" for case, answer in zip(cases, answers))
