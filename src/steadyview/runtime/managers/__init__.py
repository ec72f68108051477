"""View managers: records of served views kept straight from the update log, as long Spark tasks.

Paper 003's machine. A *manager* is a task of one plain `mapInArrow` job. It holds leases of log
streams, polls their entries from the log's Delta files, has the state machines of
`maintenance/records` say what is to be done, and does it at the stores. The state is in the stores:
records with their signatures, and behind them the registry of positions. So a manager that is
killed, doubled or cut off loses nothing but time.

    record_view   which views can be kept like that, and what a log row adds to which record
    log_entries   rows of the log as entries of streams
    lanes         one view's streams in one manager: entries in, operations out, positions
    managing      the loop of a manager
    manager_job   the Spark job, started again every few minutes, and the leases
    log_records   whether records go on or begin anew, and their first state
"""
