"""The views of the page, made in a process of their own, so that no mail waits for them."""
