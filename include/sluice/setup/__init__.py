"""What a machine needs before the first run: Java, the locked jars, the class archive."""
