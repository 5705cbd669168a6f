SELECT name, max(driver) AS driver
FROM (
  SELECT name, max(driver) AS driver, time_bucket('10 minutes', time) AS ten_minutes
  FROM readings
  WHERE time >= '{from}' AND time < '{to}' AND name IS NOT NULL AND fleet = '{fleet}'
  GROUP BY name, ten_minutes
  HAVING avg(velocity) > 1
) AS driven
GROUP BY name
HAVING count(*) > {sessions}
