"""The command line: arguments, printing, exit codes. One file for each group of commands.

Commands import packages in their bodies, so that `spamd --help` loads none of them.
"""
