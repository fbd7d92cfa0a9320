SELECT
  i.impression_id,
  i.ad,
  i.campaign,
  i.shown_at,
  c.clicked_at,
  c.country,
  unix_timestamp(c.clicked_at) - unix_timestamp(i.shown_at) AS seconds
FROM impressions AS i
JOIN clicks AS c
  ON i.impression_id = c.impression_id AND c.clicked_at BETWEEN i.shown_at AND i.shown_at + INTERVAL 1 HOUR
