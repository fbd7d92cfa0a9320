SELECT
  device,
  at,
  unit,
  CASE unit WHEN 'F' THEN (value - 32) / 1.8 ELSE value END AS celsius
FROM source
