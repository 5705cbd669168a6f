SELECT name, driver, current_load
FROM (
  SELECT DISTINCT ON (name) name, driver, current_load, load_capacity
  FROM diagnostics
  WHERE name IS NOT NULL AND fleet = '{fleet}'
  ORDER BY name, time DESC
) AS newest
WHERE current_load / load_capacity > 0.9
