"""Every door into Spark and its JVM: session, settings, tables, failures told in sentences."""
