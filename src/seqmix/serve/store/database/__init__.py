"""Connections to SQLite and PostgreSQL, and their transactions."""
