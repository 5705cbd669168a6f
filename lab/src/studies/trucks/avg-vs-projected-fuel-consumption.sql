SELECT fleet, avg(fuel_consumption) AS avg_fuel_consumption,
  avg(nominal_fuel_consumption) AS projected_fuel_consumption
FROM readings
WHERE velocity > 1 AND fleet IS NOT NULL AND nominal_fuel_consumption IS NOT NULL
  AND name IS NOT NULL
GROUP BY fleet
