"""Records to columns: text, CSV, JSON and the formats whose files carry their schema."""
