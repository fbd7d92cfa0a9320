WITH readings AS (
  SELECT device, at, measure, value
  FROM messages
  LATERAL VIEW explode(measures) AS measure, value
)
SELECT
  r.device,
  d.site,
  d.model,
  CAST(r.at AS DATE) AS date,
  r.at,
  r.measure,
  r.value
FROM readings AS r
LEFT JOIN devices AS d ON r.device = d.device
