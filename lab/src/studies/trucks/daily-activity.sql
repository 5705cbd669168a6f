SELECT fleet, model, day, sum(rows_of_ten_minutes) / 144.0 AS daily_activity
FROM (
  SELECT name, max(fleet) AS fleet, max(model) AS model,
    time_bucket('24 hours', time) AS day, time_bucket('10 minutes', time) AS ten_minutes,
    count(*) AS rows_of_ten_minutes
  FROM diagnostics
  WHERE name IS NOT NULL
  GROUP BY name, day, ten_minutes
  HAVING avg(status) < 1
) AS active
GROUP BY fleet, model, day
ORDER BY day
