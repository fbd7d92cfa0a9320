SELECT word, count(*) AS times
FROM (SELECT explode(split(lower(value), r'\W+')) AS word FROM lines)
WHERE word <> ''
GROUP BY word
