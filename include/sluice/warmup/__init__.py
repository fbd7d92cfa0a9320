"""The last part of set-up: runs a small pipeline, so that every later run starts faster."""
