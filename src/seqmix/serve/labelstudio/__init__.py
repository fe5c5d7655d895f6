"""Label Studio as another way to annotate."""
