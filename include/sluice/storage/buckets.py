"""S3 for our own Python: one client, bounded in time, whose errors say whether another try can
help."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from ..errors import SourceError, TerminalError, TransientError

if TYPE_CHECKING:
    from botocore.client import BaseClient

_ABSENT = {"404", "NoSuchKey", "NotFound"}
_REFUSED = {
    "403",
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AllAccessDisabled",
}


def in_bucket(path: str | os.PathLike) -> bool:
    """True for `s3a://...` and `s3://...`."""
    return str(path).startswith(("s3a://", "s3://"))


def split_uri(uri: str) -> tuple[str, str]:
    """`s3a://bucket/a/b` -> bucket and key; the scheme may be absent."""
    bucket, _, key = (
        uri.partition("://")[2].partition("/") if "://" in uri else uri.lstrip("/").partition("/")
    )
    return bucket, key


def bucket_of(path: str) -> str | None:
    """The bucket that a path lies in; None for one that lies in none."""
    return split_uri(path)[0] if in_bucket(path) else None


def aws_client(service: str, region: str | None = None) -> "BaseClient":
    """boto3's client: endpoint, credentials and, unless it is given, region as boto3 finds them;
    one a process, made anew when the environment says something else."""
    return _client(
        service,
        region,
        os.getpid(),
        tuple(
            sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
        ),
    )


def s3_client() -> "BaseClient":
    """The client for S3."""
    return aws_client("s3")


@cache
def _client(service: str, region: str | None, pid: int, environment: tuple) -> "BaseClient":
    """pid: a forked process must not share its parent's connections."""
    import boto3

    return boto3.session.Session().client(service, region_name=region, config=_config())


def _config(**more: object) -> object:
    """A store that refuses is given up after a few seconds, one that is silent after a minute;
    boto3's own limit is five minutes."""
    from botocore.config import Config

    return Config(
        connect_timeout=5,
        read_timeout=15,
        retries={"mode": "standard", "total_max_attempts": 4},
        max_pool_connections=32,
        **more,
    )


def find_endpoint() -> tuple[str | None, str | None]:
    """The endpoint that was configured (None: AWS's own) and the region, so that Spark talks to the
    store that boto3 talks to."""
    import boto3

    used = s3_client().meta
    plain = (
        boto3.session.Session()
        .client("s3", config=_config(ignore_configured_endpoint_urls=True))
        .meta
    )
    region = None if used.region_name == "aws-global" else used.region_name
    return (None if used.endpoint_url == plain.endpoint_url else used.endpoint_url), region


def delta_options() -> dict[str, str]:
    """What the `deltalake` package needs to be told to reach the store that boto3 reaches."""
    import boto3

    endpoint, region = find_endpoint()
    found = boto3.session.Session().get_credentials()
    options = {"aws_region": region or "us-east-1", "max_retries": "3", "retry_timeout": "30s"}
    if endpoint:
        options |= {"aws_endpoint": endpoint, "aws_allow_http": "true"}
    if found is not None:
        keys = found.get_frozen_credentials()
        options |= {"aws_access_key_id": keys.access_key, "aws_secret_access_key": keys.secret_key}
        options |= {"aws_session_token": keys.token} if keys.token else {}
    return options


@contextmanager
def store_errors(uri: str) -> Iterator[None]:
    """Turn botocore's errors into ours.

    Raises FileNotFoundError for an absent key, SourceError for an absent bucket, TerminalError
    where access is refused, TransientError for all else: never another OSError, which readers take
    for a broken file.
    """
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

    try:
        yield
    except ClientError as error:
        code, bucket = error.response["Error"].get("Code", ""), split_uri(uri)[0]
        if code in _ABSENT:
            raise FileNotFoundError(f"no such object: {uri}") from None
        if code == "NoSuchBucket":
            raise SourceError(
                "the bucket does not exist",
                where=uri,
                value=bucket,
                do="Create it, or mend the path; $AWS_ENDPOINT_URL says which store is asked",
            ) from None
        if code in _REFUSED:
            raise TerminalError(
                f"the store refused access: {code}",
                where=uri,
                do="Give the run's credentials the right to list, read, write and delete there",
            ) from None
        raise TransientError(f"the store failed: {error}", where=uri, do="Run again") from error
    except ParamValidationError as error:
        raise SourceError(
            "not the address of an object or a folder in a bucket",
            where=uri,
            value=str(error).partition("\n")[2][:120],
            do="Write s3a://bucket/folder",
        ) from None
    except (BotoCoreError, OSError) as error:
        raise TransientError(
            f"the store could not be reached: {error}",
            where=uri,
            do="Run again; $AWS_ENDPOINT_URL and the credentials must be those of this store",
        ) from error
