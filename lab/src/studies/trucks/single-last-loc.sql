SELECT DISTINCT ON (name) name, driver, longitude, latitude
FROM readings
WHERE name IN ('{truck}')
ORDER BY name, time DESC
