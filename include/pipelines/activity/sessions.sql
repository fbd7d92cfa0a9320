SELECT
  visitor,
  session_window.start AS began,
  max(at) AS ended,
  count(*) AS requests,
  size(collect_set(page)) AS pages,
  count_if(status >= 400) AS failed
FROM events
GROUP BY visitor, session_window(at, '30 minutes')
