SELECT
  InvoiceNo AS invoice,
  upper(StockCode) AS product,
  trim(Description) AS description,
  Quantity AS quantity,
  UnitPrice AS unit_price,
  Quantity * UnitPrice AS amount,
  InvoiceDate AS at,
  CAST(CustomerID AS BIGINT) AS customer,
  Country AS country
FROM source
