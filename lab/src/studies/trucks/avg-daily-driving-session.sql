WITH driver_status AS (
  SELECT name, time_bucket('10 minutes', time) AS ten_minutes, avg(velocity) > 5 AS driving
  FROM readings
  WHERE name IS NOT NULL
  GROUP BY name, ten_minutes
), driver_status_before AS (
  SELECT name, ten_minutes, driving,
    lag(driving) OVER (PARTITION BY name ORDER BY ten_minutes) AS was_driving
  FROM driver_status
), driver_status_change AS (
  SELECT name, ten_minutes AS start, driving,
    lead(ten_minutes) OVER (PARTITION BY name ORDER BY ten_minutes) AS stop
  FROM driver_status_before
  WHERE driving <> was_driving
)
SELECT name, time_bucket('24 hours', start) AS day,
  avg(extract(epoch FROM stop) - extract(epoch FROM start)) AS duration_s
FROM driver_status_change
WHERE driving
GROUP BY name, day
ORDER BY name, day
