"""A Kafka topic as a sink: at least once, each record known by its headers."""
