SELECT
  event.eventID AS event_id,
  try_cast(event.eventTime AS TIMESTAMP) AS event_time,
  CAST(try_cast(event.eventTime AS TIMESTAMP) AS DATE) AS event_date,
  event.eventSource AS event_source,
  event.eventName AS event_name,
  event.awsRegion AS region,
  coalesce(event.recipientAccountId, event.userIdentity.accountId) AS account,
  event.userIdentity.type AS user_type,
  event.userIdentity.arn AS user_arn,
  event.sourceIPAddress AS source_ip,
  event.userAgent AS user_agent,
  event.readOnly AS read_only,
  event.errorCode AS error_code,
  event.errorMessage AS error_message,
  event.eventName = 'ConsoleLogin' AND get_json_object(event.additionalEventData, '$.MFAUsed') = 'No' AS login_without_mfa,
  event.requestParameters AS request_parameters,
  event.responseElements AS response_elements
FROM source
LATERAL VIEW explode(Records) AS event
