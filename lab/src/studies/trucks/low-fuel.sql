SELECT name, driver, fuel_state
FROM (
  SELECT DISTINCT ON (name) name, driver, fuel_state
  FROM diagnostics
  WHERE name IS NOT NULL AND fleet = '{fleet}'
  ORDER BY name, time DESC
) AS newest
WHERE fuel_state < 0.1
