"""People's answers: sentences, annotators, events, rankings, in SQLite or PostgreSQL."""
