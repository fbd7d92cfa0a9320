SELECT
  country,
  date_trunc('week', day) AS week,
  sum(sold) AS sold,
  sum(returned) AS returned,
  sum(revenue) AS revenue,
  sum(invoices) AS invoices,
  count(*) AS days
FROM source
GROUP BY country, date_trunc('week', day)
