"""What the commands read: labeled data, and raw text."""
