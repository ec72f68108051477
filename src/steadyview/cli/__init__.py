"""Talks to people: the `steadyview` command.

Belongs here: arguments, tables, colours, exit codes, the starter project of `init`.
Does not belong here: anything a program would want too; that is the `Warehouse` of `runtime`.
Laws: standard output holds results only, everything else goes to standard error; every error is
told as fact, detail and hint; values of a database never reach the terminal as control characters.
"""

from steadyview.cli.app import main

__all__ = ["main"]
