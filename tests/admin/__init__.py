"""What the page and the API show and do."""
