WITH breakdown_per_truck_per_ten_minutes AS (
  SELECT name, max(model) AS model, time_bucket('10 minutes', time) AS ten_minutes,
    count(status = 0) / count(*) >= 0.5 AS broken_down
  FROM diagnostics
  WHERE name IS NOT NULL
  GROUP BY name, ten_minutes
), breakdowns_per_truck AS (
  SELECT name, model, broken_down,
    lead(broken_down) OVER (PARTITION BY name ORDER BY ten_minutes) AS next_broken_down
  FROM breakdown_per_truck_per_ten_minutes
)
SELECT model, count(*) AS breakdowns
FROM breakdowns_per_truck
WHERE NOT broken_down AND next_broken_down
GROUP BY model
