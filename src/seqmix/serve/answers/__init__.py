"""Answers that can be looked up again, with what people wrote about them."""
