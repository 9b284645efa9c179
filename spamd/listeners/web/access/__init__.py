"""Who may see and change what over HTTP: passwords, sessions, tokens, proxies."""
