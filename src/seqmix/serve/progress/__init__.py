"""How far a project is: how long answers take, what the goal is, how each tag does."""
