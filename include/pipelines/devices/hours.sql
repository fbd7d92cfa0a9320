SELECT
  concat_ws('/', device, measure, date_format(window.start, "yyyy-MM-dd'T'HH")) AS id,
  device,
  measure,
  window.start AS hour,
  count(*) AS readings,
  round(avg(value), 3) AS average,
  max(value) AS highest
FROM readings
GROUP BY device, measure, window(at, '1 hour')
