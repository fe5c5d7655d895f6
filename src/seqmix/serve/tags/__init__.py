"""Changes of the tags while people work: what each would touch, and what it leaves to review."""
