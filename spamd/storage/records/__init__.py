"""The tables as the page and the API list them, part by part (`admin.ports`)."""
