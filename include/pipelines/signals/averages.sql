SELECT
  device,
  window.start AS began,
  count(*) AS readings,
  round(avg(celsius), 2) AS average,
  max(celsius) AS highest
FROM readings
GROUP BY device, window(at, '10 minutes')
