SELECT DISTINCT ON (name) name, driver, longitude, latitude
FROM readings
WHERE name IS NOT NULL AND fleet = '{fleet}'
ORDER BY name, time DESC
