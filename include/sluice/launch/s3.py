"""Settings of Hadoop's client for S3, where something of a pipeline lies in a bucket."""

from ..storage.buckets import find_endpoint

_ALWAYS = {
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
    # The chain that boto3 walks as well: environment, web identity, profile, container, instance.
    # Hadoop's own chain knows no profile.
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    ),
    # A store that answers 503 for minutes must end the run as transient. Hadoop's own limits are
    # 20 tries with doubling pauses, which is hours; with these a call that is refused is given up
    # after about a minute, and one that gets no answer after six.
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.retry.interval": "500ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "5",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "500ms",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "15s",
    "spark.hadoop.fs.s3a.connection.timeout": "30s",
}
_CHECKPOINTS = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"


def s3_settings(checkpoints: bool) -> dict[str, str]:
    """Settings for `s3a://`: the store, region and credentials that boto3 finds.

    checkpoints: they lie there too, where a rename is a copy that can be cut in two.
    """
    endpoint, region = find_endpoint()
    settings = dict(_ALWAYS)
    if endpoint:
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": str(".amazonaws.com" not in endpoint).lower(),
        }
    if endpoint or region:
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region or "us-east-1"
    if checkpoints:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = _CHECKPOINTS
    return settings
