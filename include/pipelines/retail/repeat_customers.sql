WITH bought AS (
  SELECT
    customer,
    min(CASE WHEN amount > 0 THEN at END) AS first_purchase,
    max(CASE WHEN amount > 0 THEN at END) AS last_purchase,
    count(DISTINCT CASE WHEN amount > 0 THEN invoice END) AS invoices,
    sum(amount) AS revenue
  FROM source
  WHERE customer IS NOT NULL
  GROUP BY customer
)
SELECT *, invoices > 1 AS is_repeat
FROM bought
WHERE invoices > 0 -- who has only credit notes bought before the files begin
