"""What suggests spans beside the project's model: dictionaries, models, files, endpoints."""
