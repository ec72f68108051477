"""Why a view is refused: one row per stable code.

`docs/reasons.md` documents exactly these, in this order (a test holds the two together). A code is
never renamed or reused; new ones are appended to their group.
"""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """A stable code, one sentence of meaning, and what a person can do about it."""

    code: str
    meaning: str
    hint: str


_RECOMPUTE = "set 'steadyview.fallback' = 'recompute' to have the view recomputed instead"

REASONS: tuple[Reason, ...] = (
    # the file
    Reason("SYNTAX_ERROR", "the text is not SQL that can be read", "correct the SQL"),
    Reason("SEVERAL_STATEMENTS", "the file holds more than one statement", "one view per file"),
    Reason(
        "NOT_A_VIEW",
        "the file holds something other than one SELECT or CREATE MATERIALIZED VIEW",
        "write: CREATE MATERIALIZED VIEW name [TBLPROPERTIES (...)] [COMMENT '...'] AS SELECT ...",
    ),
    Reason(
        "VIEW_NAME",
        "the view's name is not one plain identifier",
        "use letters, digits and underscores, at most 128 of them",
    ),
    Reason(
        "UNKNOWN_PROPERTY",
        "a 'steadyview.*' property is not known",
        "the properties are 'steadyview.level', 'steadyview.algorithm' and 'steadyview.fallback'",
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
        "ALGORITHM_AGGREGATES",
        "the algorithm deletes rows by key, so it cannot keep an aggregate",
        "force an algorithm without keys, such as 'sweep'",
    ),
    Reason(
        "UNSUPPORTED_SYNTAX",
        "a construct of the SQL is outside what views are read for",
        "write it as a plain SELECT ... FROM ... WHERE ... GROUP BY ...; " + _RECOMPUTE,
    ),
    Reason(
        "PARAMETER",
        "the SQL has a parameter, a marker or a variable, whose value the view cannot know",
        "write the value into the SQL",
    ),
    # names
    Reason(
        "UNKNOWN_TABLE",
        "a table is neither watched at a source nor a WITH query",
        "name it source.table or source.schema.table, and list it in the source's tables",
    ),
    Reason(
        "AMBIGUOUS_TABLE",
        "a table's name means several watched tables",
        "write source.schema.table, in the exact case",
    ),
    Reason(
        "VIEW_ON_VIEW",
        "the view reads another view",
        "repeat the other view's SELECT as a WITH query",
    ),
    Reason("UNKNOWN_COLUMN", "a column does not exist", "see the columns of the table"),
    Reason(
        "AMBIGUOUS_COLUMN",
        "a column's name means several columns",
        "qualify the column with its table's alias",
    ),
    Reason(
        "UNSUPPORTED_TYPE",
        "a column's type cannot be kept exactly",
        "leave the column out, or cast it at the source to a type of docs/types.md",
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
        "NO_FROM",
        "a SELECT reads no table",
        "a view is maintained from the changes of tables: add FROM",
    ),
    Reason("OUTER_JOIN", "LEFT, RIGHT and FULL joins are not maintained", _RECOMPUTE),
    Reason("SEMI_JOIN", "SEMI and ANTI joins are not maintained", _RECOMPUTE),
    Reason(
        "NATURAL_JOIN",
        "a NATURAL join changes its meaning when a table gets a column",
        "write JOIN ... USING (columns)",
    ),
    Reason("ASOF_JOIN", "ASOF joins are not maintained", _RECOMPUTE),
    Reason("LATERAL_JOIN", "LATERAL subqueries are not maintained", _RECOMPUTE),
    Reason("LATERAL_VIEW", "LATERAL VIEW is not maintained", _RECOMPUTE),
    Reason(
        "GENERATOR",
        "functions that make several rows of one (explode, inline, stack...) are not maintained",
        _RECOMPUTE,
    ),
    Reason("TABLE_FUNCTION", "a table function is not a watched table", _RECOMPUTE),
    Reason("TABLESAMPLE", "a sample is not a function of the table's rows", "leave it out"),
    Reason(
        "TIME_TRAVEL",
        "a table is read as of another time than the view's",
        "leave it out; a view's past states are read with: steadyview query --at",
    ),
    Reason("PIVOT", "PIVOT and UNPIVOT are not maintained", _RECOMPUTE),
    Reason("RECURSIVE", "recursive WITH queries are not maintained", _RECOMPUTE),
    Reason(
        "TOO_MANY_RELATIONS",
        "the view has more than 64 occurrences of tables once its subqueries are flattened",
        "split the view",
    ),
    # rows
    Reason("DISTINCT", "SELECT DISTINCT is not maintained", "use GROUP BY over the columns"),
    Reason(
        "SUBQUERY",
        "subqueries in SELECT, WHERE, ON or GROUP BY (EXISTS, IN, scalar) are not maintained",
        "join the table in FROM; " + _RECOMPUTE,
    ),
    Reason("SET_OPERATION", "UNION, INTERSECT and EXCEPT are not maintained", _RECOMPUTE),
    Reason(
        "ORDER_BY",
        "a view is a bag of rows: ORDER BY, SORT BY, DISTRIBUTE BY mean nothing in it",
        "order when you read the view",
    ),
    Reason("LIMIT", "LIMIT, OFFSET and FETCH are not maintained", "limit when you read the view"),
    Reason("WINDOW", "window functions and QUALIFY are not maintained", _RECOMPUTE),
    # groups
    Reason(
        "HAVING",
        "HAVING is not maintained",
        "select the aggregate, and filter when you read the view",
    ),
    Reason("GROUPING_SETS", "GROUPING SETS, CUBE and ROLLUP are not maintained", "one view each"),
    Reason(
        "GROUP_ORDINAL",
        "a number in GROUP BY is not the place of a column in SELECT",
        "count from 1, or name the expression",
    ),
    Reason(
        "NOT_GROUPED",
        "a selected expression is neither grouped nor aggregated",
        "add it to GROUP BY, written the same way",
    ),
    Reason("MIN_MAX", "MIN and MAX are not maintained", _RECOMPUTE),
    Reason(
        "OTHER_AGGREGATE",
        "only COUNT, SUM and AVG are maintained",
        _RECOMPUTE,
    ),
    Reason("DISTINCT_AGGREGATE", "aggregates over DISTINCT are not maintained", _RECOMPUTE),
    Reason(
        "AGGREGATE_FILTER",
        "FILTER (WHERE ...) on an aggregate is not maintained",
        "aggregate CASE WHEN condition THEN value END instead",
    ),
    Reason(
        "AGGREGATE_MISPLACED",
        "an aggregate stands in WHERE, ON, GROUP BY or inside another aggregate",
        "aggregates belong in the SELECT list",
    ),
    Reason(
        "AGGREGATE_NOT_TOP",
        "the result of an aggregation is joined, filtered or aggregated again",
        "only SELECT of expressions over it is maintained; " + _RECOMPUTE,
    ),
    Reason(
        "TIME_WINDOW",
        "window(), session_window() and window_time() are not maintained",
        "group by date_trunc(...) or similar instead",
    ),
    # values
    Reason(
        "NON_DETERMINISTIC",
        "a function gives different values for the same row",
        "leave it out of the view",
    ),
    Reason(
        "SESSION_FUNCTION",
        "a function or literal depends on the clock, the session or the user",
        "leave it out of the view; compare with the clock when you read the view",
    ),
    Reason(
        "UNKNOWN_FUNCTION",
        "a function is not a built-in function of Spark known to be deterministic",
        "use built-in functions",
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
    Reason("TYPE_ERROR", "Spark rejects the types of an expression", "cast the operands"),
)

BY_CODE = {reason.code: reason for reason in REASONS}
