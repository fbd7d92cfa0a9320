"""Bytes that we write ourselves, on a disk or in a bucket, and where they lie."""

from .buckets import aws_client, in_bucket, s3_client, split_uri, store_errors
from .files import create_file, forget_checksum, remove_tree, replace_file
from .moving import move_file, remove_file
from .paths import (
    PIPELINES,
    PROJECT,
    Paths,
    batches_folder,
    delta_log,
    depth_below,
    is_remote,
    lease_folder,
    open_path,
    open_remote,
    resolve_path,
    spark_folder,
)

__all__ = [
    "PIPELINES",
    "PROJECT",
    "Paths",
    "aws_client",
    "batches_folder",
    "create_file",
    "forget_checksum",
    "in_bucket",
    "depth_below",
    "is_remote",
    "lease_folder",
    "move_file",
    "open_path",
    "open_remote",
    "remove_file",
    "remove_tree",
    "replace_file",
    "resolve_path",
    "spark_folder",
    "delta_log",
    "s3_client",
    "split_uri",
    "store_errors",
]
