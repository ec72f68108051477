"""Why a view is refused: one row per stable code.

`docs/reasons.md` documents exactly these, in this order (a test holds the two together). A code is
never renamed or reused; new ones are appended to their group.

Claim: a hint never changes what the view means. What it says to write instead gives the same rows,
or says under which condition it does; where it says that a view can be recomputed, Spark runs it.
"""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """A stable code, one sentence of meaning, and what a person can do about it.

    `instead`: what to write; empty where there is nothing. `recompute`: recomputing the view helps.
    """

    code: str
    meaning: str
    instead: str
    recompute: bool = False

    @property
    def hint(self) -> str:
        """All that a person can do."""
        return hint(self.instead, recompute=self.recompute)


def hint(
    instead: str, *, recompute: bool, recomputed: bool = False, view: str = "name"
) -> str:
    """What to write instead, and how to have the view recomputed, unless it is already."""
    if not recompute:
        return instead
    if recomputed:
        return instead and f"to have it maintained incrementally: {instead}"
    way = (
        f"have it recomputed: CREATE MATERIALIZED VIEW {view}"
        " TBLPROPERTIES ('steadyview.fallback' = 'recompute') AS SELECT ..."
    )
    return f"{instead}; or {way}" if instead else way



NOT_CURED = frozenset(
    {
        "UNSUPPORTED_TYPE",
        "DUPLICATE_NAME",
        "RESERVED_NAME",
        "TABLESAMPLE",
        "NON_DETERMINISTIC",
        "SESSION_FUNCTION",
        "LEVEL",
        "SERVE_KEY",
    }
)
"""What stays refused in a view that asks to be recomputed: columns that cannot be stored, rows that
another reading of the same tables would not give again, a level that it would not have, and a key
that its records cannot have."""

REASONS: tuple[Reason, ...] = (
    # the file
    Reason(
        "SYNTAX_ERROR",
        "the text is not SQL that can be read",
        "correct the SQL at the place shown, in Spark's dialect",
    ),
    Reason(
        "SEVERAL_STATEMENTS",
        "the file holds more than one statement",
        "move every further statement into a file of its own: one view per file",
    ),
    Reason(
        "NOT_A_VIEW",
        "the file holds something other than one SELECT or CREATE MATERIALIZED VIEW",
        "write: CREATE MATERIALIZED VIEW name [TBLPROPERTIES (...)] [COMMENT '...'] AS SELECT ...",
    ),
    Reason(
        "VIEW_NAME",
        "the view's name is not one plain identifier",
        "use letters, digits and underscores, at most 128 of them, and no schema in front",
    ),
    Reason(
        "UNKNOWN_PROPERTY",
        "a 'steadyview.*' property is not known",
        "the properties are 'steadyview.level', 'steadyview.algorithm', 'steadyview.fallback',"
        " 'steadyview.table', 'steadyview.changes', 'steadyview.compress',"
        " 'steadyview.max_staleness', 'steadyview.policy', 'steadyview.schedule',"
        " 'steadyview.refresh_to', 'steadyview.serve', 'steadyview.serve.key' and"
        " 'steadyview.serve.from'",
    ),
    Reason(
        "UNKNOWN_LEVEL",
        "the consistency level is not known",
        "'steadyview.level' is one of 'convergent', 'weak', 'strong', 'complete'",
    ),
    Reason(
        "UNKNOWN_FALLBACK",
        "the fallback is not known",
        "'steadyview.fallback' is 'recompute' or 'refuse'",
    ),
    Reason(
        "UNKNOWN_TABLE_SETTING",
        "how far a table of the view may trail is not known",
        "'steadyview.table' and 'steadyview.changes' are 'every batch', 'every N seconds' (or"
        " minutes, hours), or 'never'",
    ),
    Reason(
        "UNKNOWN_COMPRESSION",
        "which moments of the view's past are given up is not known",
        "'steadyview.compress' is 'hour after N days' or 'day after N days' (or minutes, hours,"
        " weeks)",
    ),
    Reason(
        "UNKNOWN_STALENESS",
        "how old an answer over the view may be is not known",
        "'steadyview.max_staleness' is a length of time such as '0s', '30s', '5m' or '2h'",
    ),
    Reason(
        "UNKNOWN_ALGORITHM",
        "the algorithm is not known",
        "'steadyview.algorithm' is a name of docs/algorithms.md, such as 'sweep' or 'strobe'",
    ),
    Reason(
        "ALGORITHM_LEVEL",
        "the algorithm promises less than the level the view asks for",
        "ask for a lower 'steadyview.level', or leave one of the two out",
    ),
    Reason(
        "ALGORITHM_SOURCES",
        "the algorithm is made for one source, and the view reads several",
        "force another algorithm: 'sweep' needs nothing but the view",
    ),
    Reason(
        "ALGORITHM_KEYS",
        "the algorithm needs a key of every relation among the view's columns",
        "select every table's primary key (declared NOT NULL in SQLite, not deferrable in"
        " PostgreSQL), or force an algorithm without keys, such as 'sweep'",
    ),
    Reason(
        "CYCLE",
        "the view reads itself, over other views",
        "let one of the views on the path read tables of sources instead",
    ),
    Reason(
        "PARENT",
        "the view reads another view that is refused, or it is recomputed itself and reads a view",
        "correct that view first, or read the tables that it reads",
    ),
    Reason(
        "LEVEL",
        "the view asks for more consistency than it can have: what it reads promises less",
        "ask for a lower 'steadyview.level', or leave it out: then it has the level of its inputs",
    ),
    Reason(
        "ALGORITHM_AGGREGATES",
        "the algorithms of the papers keep select-project-join views, not aggregates",
        "put the joined rows into a view of their own with the algorithm, and aggregate that view",
    ),
    Reason(
        "ALGORITHM_SHAPE",
        "the algorithm keeps joins of tables, with COUNT, SUM and AVG on top, and nothing else",
        "leave 'steadyview.algorithm' out",
        recompute=True,
    ),
    Reason(
        "READING",
        "Spark reads the SQL otherwise than steadyview does",
        "write the expression at the place shown in another way, with brackets or a plain function",
        recompute=True,
    ),
    Reason(
        "UNSUPPORTED_SYNTAX",
        "a construct of the SQL is outside what views are read for",
        "write it as a plain SELECT ... FROM ... WHERE ... GROUP BY ...",
        recompute=True,
    ),
    Reason(
        "PARAMETER",
        "the SQL has a parameter, a marker or a variable, whose value the view cannot know",
        "write the value into the SQL",
    ),
    Reason(
        "UNKNOWN_POLICY",
        "the refresh policy is not known",
        "'steadyview.policy' is one of 'immediate', 'ipda', 'dpda', 'snapshot'",
    ),
    Reason(
        "UNKNOWN_SCHEDULE",
        "the schedule cannot be read, never comes due, or names a time zone that is not known",
        "'steadyview.schedule' is 'on demand', 'every N minutes' (or seconds, hours, days),"
        " 'daily at HH:MM ZONE' or 'cron MINUTE HOUR DAY MONTH WEEKDAY ZONE', where ZONE is a name"
        " such as Europe/Berlin, or left out for that of the project",
    ),
    Reason(
        "UNKNOWN_REFRESH_TO",
        "the time that a refresh brings the view to is not known",
        "'steadyview.refresh_to' is 'tick', 'end of hour', 'end of day' or 'end of month'",
    ),
    Reason(
        "SCHEDULE",
        "what the view asks for does not go together with when it is refreshed",
        "give it a 'steadyview.policy' that goes with the rest, or leave the rest out",
    ),
    Reason(
        "SERVE_KEY",
        "the view is to be served from a store, and its records have no key to be found by",
        "name columns in 'steadyview.serve.key' (commas between them) whose values together are"
        " in one row at most; a view that selects all its GROUP BY columns needs no key",
    ),
    Reason(
        "UNKNOWN_SERVE_FROM",
        "what the view's records are to be kept from is not known, or it has none",
        "'steadyview.serve.from' is 'changes' or 'log', beside 'steadyview.serve'",
    ),
    # names
    Reason(
        "UNKNOWN_TABLE",
        "a table is neither watched at a source nor a WITH query",
        "write source.table or source.schema.table, and list the table in tables of its source in"
        " steadyview.toml",
    ),
    Reason(
        "AMBIGUOUS_TABLE",
        "a table's name means several watched tables",
        "write source.schema.table, in the exact case",
    ),
    Reason(
        "UNKNOWN_COLUMN",
        "a column does not exist",
        "use a column of the tables in FROM; one that was added at the source while steadyview run"
        " was up can be used after its next start",
    ),
    Reason(
        "AMBIGUOUS_COLUMN",
        "a column's name means several columns",
        "write the table's alias in front of it: alias.column",
    ),
    Reason(
        "UNSUPPORTED_TYPE",
        "a column's type cannot be kept exactly",
        "leave the column out of the view, or give it a type of docs/types.md",
    ),
    Reason(
        "DUPLICATE_NAME",
        "two columns of the view have the same name",
        "give each column its own name with AS; names differ by more than case",
    ),
    Reason(
        "RESERVED_NAME",
        "a column of the view has a name the warehouse needs for itself",
        "choose another name with AS",
    ),
    # FROM
    Reason(
        "NATURAL_JOIN",
        "a NATURAL join changes its meaning when a table gets a column",
        "write JOIN ... USING (columns)",
    ),
    Reason(
        "ASOF_JOIN",
        "Spark's SQL has no ASOF joins",
        "join on the range (ON p.time <= o.time), and keep the newest match of each row when you"
        " read the view",
    ),
    Reason("LATERAL_JOIN", "LATERAL subqueries are not maintained", "", recompute=True),
    Reason(
        "LATERAL_VIEW",
        "LATERAL VIEW is not maintained",
        "select the column as it is, and write LATERAL VIEW when you read the view",
        recompute=True,
    ),
    Reason(
        "GENERATOR",
        "functions that make several rows of one (explode, inline, stack...) are not maintained",
        "select the argument as it is, and call the function when you read the view",
        recompute=True,
    ),
    Reason("TABLE_FUNCTION", "a table function is not a watched table", "", recompute=True),
    Reason(
        "TABLESAMPLE",
        "a sample is not a function of the table's rows",
        "leave it out, and sample when you read the view",
    ),
    Reason(
        "TIME_TRAVEL",
        "a table is read as of another time than the view's",
        "leave it out; a view's past states are read with: steadyview query --at",
    ),
    Reason(
        "PIVOT",
        "PIVOT and UNPIVOT are not maintained",
        "leave it out, and write it when you read the view",
        recompute=True,
    ),
    Reason("RECURSIVE", "recursive WITH queries are not maintained", "", recompute=True),
    Reason(
        "TOO_MANY_RELATIONS",
        "the view has more than 64 occurrences of tables once its subqueries are flattened",
        "make several views, and join them when you read them",
        recompute=True,
    ),
    # rows
    Reason(
        "SUBQUERY",
        "a subquery stands where it is not maintained: as a value of its own, or it speaks of a"
        " query that is not right around it",
        "use EXISTS or IN, and compare with columns of the query right around in WHERE; or join"
        " with the subquery in FROM",
        recompute=True,
    ),
    Reason(
        "SET_OPERATION",
        "the sides of UNION, INTERSECT or EXCEPT do not match column by column",
        "select the same number of columns on both sides, in the same order, without BY NAME",
    ),
    Reason(
        "ORDER_BY",
        "a view is a bag of rows: ORDER BY, SORT BY, DISTRIBUTE BY mean nothing in it",
        "leave it out, and order when you read the view",
    ),
    Reason(
        "LIMIT",
        "LIMIT, OFFSET and FETCH are not maintained",
        "leave it out, and limit when you read the view",
        recompute=True,
    ),
    Reason(
        "WINDOW",
        "window functions and QUALIFY are not maintained",
        "select the columns it needs, and write it when you read the view",
        recompute=True,
    ),
    # groups
    Reason(
        "GROUPING_SETS",
        "GROUPING SETS, CUBE and ROLLUP are not maintained",
        "make one view for each grouping, with a plain GROUP BY",
        recompute=True,
    ),
    Reason(
        "GROUP_ORDINAL",
        "a number in GROUP BY is not the place of a column in SELECT",
        "count the columns of SELECT from 1 (none of them *), or write the expression itself",
    ),
    Reason(
        "NOT_GROUPED",
        "a selected expression is neither grouped nor aggregated",
        "add it to GROUP BY, written the same way",
    ),
    Reason(
        "OTHER_AGGREGATE",
        "only COUNT, SUM, AVG, MIN and MAX of one expression are maintained",
        "select the arguments and the columns of GROUP BY as they are, and aggregate when you read"
        " the view",
        recompute=True,
    ),
    Reason(
        "DISTINCT_AGGREGATE",
        "aggregates over DISTINCT are not maintained",
        "add the argument to SELECT and GROUP BY, and aggregate it when you read the view",
        recompute=True,
    ),
    Reason(
        "AGGREGATE_FILTER",
        "FILTER (WHERE ...) on an aggregate is not maintained",
        "put the condition into the argument: SUM(CASE WHEN condition THEN x END), or for COUNT(*)"
        " COUNT(CASE WHEN condition THEN 1 END)",
    ),
    Reason(
        "AGGREGATE_MISPLACED",
        "an aggregate stands in WHERE, ON, GROUP BY or inside another aggregate",
        "write aggregates in the SELECT list and in HAVING only, none inside another",
    ),
    Reason(
        "TIME_WINDOW",
        "window(), session_window() and window_time() are not maintained",
        "group by date_trunc('hour', time) or the like instead",
    ),
    # values
    Reason(
        "NON_DETERMINISTIC",
        "a function gives different values for the same row",
        "leave it out of the view, and call it when you read the view",
    ),
    Reason(
        "SESSION_FUNCTION",
        "a function or literal depends on the clock, the session or the user",
        "leave it out of the view, and compare with the clock when you read the view",
    ),
    Reason(
        "UNKNOWN_FUNCTION",
        "a function is not a built-in function of Spark known to be deterministic",
        "use built-in functions of Spark; functions of your own cannot be used",
    ),
    Reason(
        "OUTWARD",
        "the view would reach beyond its tables: files, addresses, the machine or the session",
        "leave it out; a view is made of the rows of watched tables alone",
    ),
    Reason(
        "FLOAT_SUM",
        "SUM or AVG over FLOAT or DOUBLE would drift",
        "cast the argument: SUM(CAST(x AS DECIMAL(38,10)))",
    ),
    Reason(
        "TYPE_ERROR",
        "Spark rejects the types of an expression",
        "correct the expression, or cast its operands to types that it takes",
    ),
    Reason(
        "UNKNOWN_TYPE",
        "a type is not one of Spark's",
        "use a type of Spark: STRING, INT, BIGINT, DECIMAL(18,2), DOUBLE, BOOLEAN, DATE,"
        " TIMESTAMP...",
    ),
)

BY_CODE = {reason.code: reason for reason in REASONS}
