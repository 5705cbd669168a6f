WITH ten_minute_driving_sessions AS (
  SELECT name, max(fleet) AS fleet, max(driver) AS driver,
    time_bucket('10 minutes', time) AS ten_minutes
  FROM readings
  WHERE name IS NOT NULL
  GROUP BY name, ten_minutes
  HAVING avg(velocity) > 1
), daily_total_session AS (
  SELECT name, max(fleet) AS fleet, max(driver) AS driver,
    time_bucket('24 hours', ten_minutes) AS day, count(*) / 6 AS hours
  FROM ten_minute_driving_sessions
  GROUP BY name, day
)
SELECT max(fleet) AS fleet, name, max(driver) AS driver, avg(hours) AS avg_daily_hours
FROM daily_total_session
GROUP BY name
