SELECT
  country,
  date(at) AS day,
  sum(greatest(amount, 0)) AS sold,
  sum(least(amount, 0)) AS returned,
  sum(amount) AS revenue,
  count(DISTINCT CASE WHEN amount > 0 THEN invoice END) AS invoices
FROM source
GROUP BY country, date(at)
