SELECT
  InvoiceNo,
  StockCode,
  Description,
  Quantity,
  InvoiceDate,
  UnitPrice,
  CAST(CustomerID AS BIGINT) AS CustomerID,
  Country,
  startswith(InvoiceNo, 'C') AS IsCancellation
FROM source
