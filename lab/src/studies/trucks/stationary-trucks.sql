SELECT name, max(driver) AS driver
FROM readings
WHERE time >= '{from}' AND time < '{to}' AND name IS NOT NULL AND fleet = '{fleet}'
GROUP BY name
HAVING avg(velocity) < 1
