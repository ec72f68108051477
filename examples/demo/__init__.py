"""`make demo`: a small shop on two live databases, three views over both, about 40 seconds.

shop      what the shop is made of: tables, first rows, the project folder
writers   a process of its own that keeps changing both databases
serve     the demo's PostgreSQL, started again later by `start-postgres.sh`
"""
