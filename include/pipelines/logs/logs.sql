-- `%d{ISO8601} %p [%t] %c: %m%n` as Hadoop writes it, and `%d{yy/MM/dd HH:mm:ss} %p %c{2}: %m%n` as Spark does
WITH records AS (
  SELECT
    value,
    r'(?s)^(\d[\d/-]+ [\d:]+(?:,\d{3})?) +(\w+) +(?:\[([^\n]*?)\] )?([\w.$-]+): ([^\r\n]*)(?:\r?\n(.*))?$' AS layout,
    regexp_extract(_source, r'([^/]+)\.log[^/]*$', 1) AS application
  FROM source
),
parts AS (
  SELECT
    application,
    coalesce(
      try_to_timestamp(regexp_extract(value, layout, 1), 'yyyy-MM-dd HH:mm:ss,SSS'),
      try_to_timestamp(regexp_extract(value, layout, 1), 'yy/MM/dd HH:mm:ss')
    ) AS at,
    regexp_extract(value, layout, 2) AS level,
    nullif(regexp_extract(value, layout, 3), '') AS thread,
    regexp_extract(value, layout, 4) AS logger,
    nullif(regexp_extract(value, layout, 5), '') AS message,
    nullif(regexp_extract(value, layout, 6), '') AS stack_trace
  FROM records
)
SELECT
  CAST(at AS DATE) AS date,
  at,
  application,
  level,
  thread,
  logger,
  message,
  nullif(regexp_extract(stack_trace, r'^([\w.$]+(?:Exception|Error))', 1), '') AS exception,
  stack_trace
FROM parts
