"""The views of the page, a module each: what is asked for, and what is shown."""
