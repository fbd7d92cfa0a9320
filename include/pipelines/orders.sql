SELECT
  order_id,
  ordered_at,
  status,
  currency,
  amount,
  customer.id AS customer_id,
  customer.country AS country,
  customer.email AS email,
  size(items) AS item_count,
  items
FROM source
