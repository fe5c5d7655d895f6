"""The stages of the recipe for few labels: their names, and how a project goes through them."""
