"""What the outside sees of us: log lines and metrics, made from the same values.

`options` is light enough for every command; `log` and `metrics` load structlog and
prometheus-client.
"""
