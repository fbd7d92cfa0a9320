WITH seen AS (
  SELECT i.ad, i.shown_at, c.impression_id AS clicked
  FROM impressions AS i
  LEFT JOIN clicks AS c
    ON i.impression_id = c.impression_id AND c.clicked_at BETWEEN i.shown_at AND i.shown_at + INTERVAL 1 HOUR
)
SELECT
  ad,
  window.start AS hour,
  count(*) AS impressions,
  count(clicked) AS clicks,
  count(clicked) / count(*) AS rate
FROM seen
GROUP BY ad, window(shown_at, '1 hour')
