"""Whose mail it is: from a recipient to the person, and what that person wishes."""
