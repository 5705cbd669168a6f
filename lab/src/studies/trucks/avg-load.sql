SELECT fleet, model, load_capacity, avg(avg_load / load_capacity) AS avg_load_percentage
FROM (
  SELECT name, max(fleet) AS fleet, max(model) AS model, max(load_capacity) AS load_capacity,
    avg(current_load) AS avg_load
  FROM diagnostics
  WHERE name IS NOT NULL
  GROUP BY name
) AS loads
GROUP BY fleet, model, load_capacity
