WITH sold AS (
  SELECT
    date_trunc('week', at) AS week,
    product,
    min(description) AS description,
    sum(quantity) AS quantity,
    sum(amount) AS revenue
  FROM source
  WHERE product RLIKE '^[0-9]{5}' -- postage, discounts and fees have codes of letters
  GROUP BY date_trunc('week', at), product
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY week ORDER BY revenue DESC, product) AS place
  FROM sold
)
SELECT week, place, product, description, quantity, revenue
FROM placed
WHERE place <= 10
