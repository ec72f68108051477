r"""Spark's SQL as sqlglot reads it for us: one tree, every node with its place, nothing translated.

sqlglot's own Spark dialect translates: it turns functions and literals into nodes of its own, and
writes other ones back. Here

    a call        stays a call of the same name, whatever the name
    a literal     stays the text that was written: `10L`, `r'\d'`, `DATE '2020-01-01'`
    a type        stays the text that was written

so that writing the tree gives the tokens that were read. `bracketed` writes it with brackets around
every operation: if Spark reads that as it reads the user's text, the tree is what Spark reads.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME", "X", "INTERVAL"})
_TEXTS = frozenset(
    {TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NATIONAL_STRING}
    | {TokenType.BYTE_STRING, TokenType.UNICODE_STRING, TokenType.BIT_STRING}
    | {TokenType.HEREDOC_STRING}
)
_UNITS = frozenset(
    f"{unit}{end}"
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND")
    + ("MILLISECOND", "MICROSECOND", "NANOSECOND")
    for end in ("", "S")
)
_OF_UNITS = frozenset(
    {"DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"}
)
_PLACED = (
    ("_parse_join", "parse_set_operation", "_parse_order", "_parse_limit", "_parse_offset")
    + ("_parse_sort", "_parse_cluster", "_parse_having", "_parse_qualify", "_parse_window")
    + ("_parse_lateral", "_parse_pivot", "_parse_table_sample", "_parse_version", "_parse_group")
    + ("_parse_where", "_parse_with", "_parse_cte", "_parse_cube_or_rollup", "_parse_unary")
    + ("_parse_grouping_sets", "_parse_select_query", "_parse_table", "_parse_function_call")
    + ("_parse_primary", "_parse_expression", "_parse_derived_table_values", "_parse_table_alias")
    + ("_parse_hint", "_parse_column", "_parse_unnest", "_parse_placeholder", "_parse_parameter")
)
"""What of the parser begins at the token that it begins with."""


class Spelled(exp.Expression):
    """A call with words between its arguments: `TRIM(BOTH ' ' FROM x)`. Words are `Var`."""

    arg_types = {"this": True, "expressions": True}


class ViewParser(SparkParser):
    """sqlglot's parser, which maps no function, and notes where everything begins."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    STRICT_CAST = True
    TRIM_PATTERN_FIRST = False
    ADD_JOIN_ON_TRUE = False
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS = {"CASE": lambda self: self._parse_case()}
    FUNCTION_PARSERS = {
        "CAST": lambda self: self._parse_cast(True),
        "TRY_CAST": lambda self: self._parse_cast(False, safe=True),
        **{
            name: lambda self: self._parse_spelled()
            for name in ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY", "CEIL")
            + ("FLOOR",)
        },
    }
    PLACEHOLDER_PARSERS = {
        TokenType.PLACEHOLDER: lambda self: self.expression(exp.Placeholder()),
        TokenType.PARAMETER: lambda self: self._parse_parameter(),
        TokenType.COLON: SparkParser.PLACEHOLDER_PARSERS[TokenType.COLON],
    }
    _WORDS = frozenset({"FROM", "FOR", "IN", "PLACING", "BOTH", "LEADING", "TRAILING", "TO"})

    def _parse_spelled(self) -> exp.Expr:
        """The arguments as they stand: expressions, commas and words."""
        name = self._tokens[self._index - 2].text
        parts: list[exp.Expr] = []
        while self._curr and self._curr.token_type is not TokenType.R_PAREN:
            word = self._curr.text.upper()
            after = self._next.token_type if self._next else None
            unit = name.upper() == "EXTRACT" and not parts
            if word in self._WORDS or word == "," or unit:
                if after is TokenType.R_PAREN and not unit and word != ",":
                    self.raise_error("Expected an expression")
                self._advance()
                parts.append(exp.Var(this="," if word == "," else self._prev.text))
                continue
            if not parts or isinstance(parts[-1], exp.Var):
                parsed = (
                    self._parse_bitwise() if name.upper() == "POSITION" else self._parse_argument()
                )
                if parsed is None:
                    self.raise_error("Expected an expression")
                    break
                parts.append(parsed)
            else:
                self.raise_error("Expected )")
                break
        if all(not isinstance(part, exp.Var) or part.name == "," for part in parts):
            return exp.Anonymous(
                this=name, expressions=[p for p in parts if not isinstance(p, exp.Var)]
            )
        return Spelled(this=name, expressions=parts)

    def _parse_argument(self) -> exp.Expr | None:
        return self._parse_lambda(alias=True)

    def _parse_expression(self) -> exp.Expr | None:
        """An element of a list, which keeps where it ends."""
        start = self._curr
        found = super()._parse_expression()
        if found is not None and start and self._prev:
            found.meta["span"] = (start.start, self._prev.end + 1)
        return found

    def _parse_range(
        self, this: exp.Expr | None = None, parse_is: bool = False
    ) -> exp.Expr | None:
        """A comparison; IN keeps where it begins and ends."""
        start = self._curr
        found = super()._parse_range(this, parse_is)
        inner = found
        while isinstance(inner, (exp.Not, exp.Is, exp.Paren, exp.In)):
            if isinstance(inner, exp.In) and start and this is None:
                inner.meta.setdefault("span", (start.start, inner.meta["stop"]))
            inner = inner.this
        return found

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        found = super()._parse_in(this, alias)
        assert self._prev
        found.meta["stop"] = self._prev.end + 1
        return found

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        """IS and IS NOT, told apart from a NOT before them."""
        found = super()._parse_is(this)
        if isinstance(found, exp.Not):
            found.meta["behind"] = True
        return found

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        """A type, which keeps its spelling."""
        start = self._curr
        found = super()._parse_types(*args, **options)
        if isinstance(found, exp.DataType) and start and self._prev:
            found.update_positions(start)
            found.meta["raw"] = self.sql[start.start : self._prev.end + 1]
        return found


def _placed(name: str) -> Any:
    original = getattr(ViewParser, name)

    def method(self: ViewParser, *args: Any, **options: Any) -> Any:
        token = self._curr
        node = original(self, *args, **options)
        fresh = isinstance(node, exp.Expression) and all(node is not arg for arg in args)
        if fresh and token and "start" not in node.meta:
            node.update_positions(token)
        if fresh and self._prev:
            node.meta["stop"] = self._prev.end + 1
        return node

    return method


for _name in _PLACED:
    setattr(ViewParser, _name, _placed(_name))


class ViewGenerator(SparkGenerator):
    """Writes a tree in the tokens that it was read from."""

    TRANSFORMS = {
        kind: write
        for kind, write in SparkGenerator.TRANSFORMS.items()
        if kind
        not in (exp.Select, exp.Cast, exp.TryCast, exp.ILike, exp.RegexpLike, exp.With, exp.Bracket)
        + (exp.BitwiseLeftShift, exp.BitwiseRightShift)
    }
    TRANSFORMS[Spelled] = lambda self, e: self.spelled_sql(e)

    def literal_sql(self, expression: exp.Literal) -> str:
        """As it was written."""
        return str(expression.this)

    def datatype_sql(self, expression: exp.DataType) -> str:
        """As it was written."""
        return str(expression.meta.get("raw") or super().datatype_sql(expression))

    def spelled_sql(self, expression: Spelled) -> str:
        """Words and arguments as they stood."""
        parts = " ".join(self.sql(part) for part in expression.expressions)
        return f"{expression.this}({parts})"

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        """Under the name that was written."""
        return f"{self.sql(expression, 'this')}({self.expressions(expression, flat=True)})"

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """`x::INT` is `CAST(x AS INT)`."""
        return f"CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

    def trycast_sql(self, expression: exp.TryCast) -> str:
        """TRY_CAST."""
        return f"TRY_CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        """DIV."""
        return self.binary(expression, "DIV")

    def mod_sql(self, expression: exp.Mod) -> str:
        """%."""
        return self.binary(expression, "%")

    def div_sql(self, expression: exp.Div) -> str:
        """/."""
        return self.binary(expression, "/")

    def dpipe_sql(self, expression: exp.DPipe) -> str:
        """||."""
        return self.binary(expression, "||")

    def bitwiseleftshift_sql(self, expression: exp.BitwiseLeftShift) -> str:
        """<<."""
        return self.binary(expression, "<<")

    def bitwiserightshift_sql(self, expression: exp.BitwiseRightShift) -> str:
        """>>."""
        return self.binary(expression, ">>")

    def regexplike_sql(self, expression: exp.RegexpLike) -> str:
        """RLIKE."""
        return self.binary(expression, "RLIKE")

    def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
        """<=>, in words that other engines have too."""
        return self.binary(expression, "IS NOT DISTINCT FROM")

    def nullsafeneq_sql(self, expression: exp.NullSafeNEQ) -> str:
        """The opposite."""
        return self.binary(expression, "IS DISTINCT FROM")

    def bracket_sql(self, expression: exp.Bracket) -> str:
        """x[i]."""
        inside = ", ".join(self.sql(e) for e in expression.expressions)
        return f"{self.sql(expression, 'this')}[{inside}]"

    def not_sql(self, expression: exp.Not) -> str:
        """NOT, in brackets wherever it is part of something."""
        inner = expression.this
        if expression.meta.get("behind") and isinstance(inner, exp.Is):
            return f"{self.sql(inner.this)} IS NOT {self.sql(inner.expression)}"
        written = f"NOT {self.sql(expression, 'this')}"
        return f"({written})" if self._is_operand(expression) else written

    def maybe_comment(self, sql: str, *args: Any, **options: Any) -> str:
        """Comments are left out."""
        return sql

    def _is_operand(self, expression: exp.Expression) -> bool:
        return isinstance(expression.parent, (exp.Binary, exp.Unary, exp.Between, exp.In)) and not (
            isinstance(expression.parent, (exp.Connector, exp.Paren))
        )


class BracketGenerator(ViewGenerator):
    """Brackets around every operation, but not between the parts of one AND or OR."""

    TRANSFORMS = dict(ViewGenerator.TRANSFORMS)

    def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
        """The expression, bracketed where it is an operation inside another expression."""
        found = super().sql(expression, key, comment)
        inside = key is None and isinstance(expression, exp.Expression) and _needs(expression)
        return f"({found})" if inside else found

    def binary(self, expression: exp.Binary, op: str) -> str:
        """Left and right each by itself."""
        return f"{self.sql(expression.this)} {op} {self.sql(expression.expression)}"


def _needs(node: exp.Expression) -> bool:
    parent = node.parent
    if not isinstance(node, (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Case)):
        return False
    if isinstance(node, (exp.Paren, exp.Dot, exp.Alias, exp.PropertyEQ)) or parent is None:
        return False
    if isinstance(node, exp.Connector) and type(parent) is type(node):
        return False
    if isinstance(node, exp.Escape) or isinstance(parent, exp.Escape):
        return False
    return isinstance(
        parent, (exp.Binary, exp.Unary, exp.Between, exp.In, exp.If, exp.Case)
    ) and not (isinstance(parent, (exp.Paren, exp.Dot)))


class ViewSql(Spark):
    """Spark's SQL, read and written without translation."""

    Parser = ViewParser
    Generator = ViewGenerator

    def tokenize(self, sql: str, dialect: Any = None) -> list[Token]:
        """The tokens; a literal is one, and has its own text."""
        return _merged(super().tokenize(sql, dialect), sql)


def _merged(tokens: list[Token], sql: str) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.HINT or (found and token.start <= found[-1].end):
            continue
        if token.token_type in _TEXTS:
            _widen(found, Token(**{**_parts(token), "token_type": TokenType.STRING}), sql)
        else:
            if token.token_type is TokenType.NUMBER:
                token = Token(**{**_parts(token), "text": sql[token.start : token.end + 1]})
            found.append(token)
    return _intervals(found, sql)


def _parts(token: Token) -> dict[str, Any]:
    names = ("token_type", "text", "line", "col", "start", "end", "comments")
    return {name: getattr(token, name) for name in names}


def _widen(found: list[Token], token: Token, sql: str) -> None:
    """Put a text behind the others: with a type before it, or another text, it is one literal."""
    first = token
    last = found[-1] if found else None
    if last is not None and not (len(found) > 1 and found[-2].token_type is TokenType.DOT):
        word = sql[last.start : last.end + 1].upper()
        if last.token_type is TokenType.STRING or word in _TYPED:
            first = found.pop()
    found.append(_one(first, token, TokenType.STRING, sql))


def _one(first: Token, last: Token, kind: TokenType, sql: str) -> Token:
    text = sql[first.start : last.end + 1]
    parts = {**_parts(first), "token_type": kind, "text": text, "end": last.end}
    return Token(**parts)


def _intervals(tokens: list[Token], sql: str) -> list[Token]:
    """INTERVAL with its values and units as one literal."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        stop = at + 1
        starts = sql[token.start : token.end + 1].upper()
        if starts == "INTERVAL":
            stop = _pairs(tokens, at + 1)
        elif token.token_type is TokenType.STRING and starts.startswith("INTERVAL"):
            stop = _unit(tokens, at + 1)
            stop = _pairs(tokens, stop) if stop > at + 1 else stop
        found.append(
            _one(token, tokens[stop - 1], TokenType.STRING, sql) if stop > at + 1 else token
        )
        at = stop
    return found


def _pairs(tokens: list[Token], at: int) -> int:
    """Behind `value unit value unit ...`."""
    while True:
        value = at
        if value < len(tokens) and tokens[value].text in ("-", "+"):
            value += 1
        if value >= len(tokens) or tokens[value].token_type not in (
            TokenType.NUMBER,
            TokenType.STRING,
        ):
            return at
        unit = _unit(tokens, value + 1)
        if unit == value + 1:
            return at
        at = unit


def _unit(tokens: list[Token], at: int) -> int:
    """Behind `unit [TO unit]`."""
    if at >= len(tokens) or tokens[at].text.upper() not in _UNITS:
        return at
    if (
        at + 2 < len(tokens)
        and tokens[at + 1].text.upper() == "TO"
        and tokens[at + 2].text.upper() in _UNITS
    ):
        return at + 3
    return at + 1


_VIEW_SQL = ViewSql()


def written(tree: exp.Expression) -> str:
    """The tree as Spark SQL."""
    return str(
        ViewGenerator(dialect=_VIEW_SQL, comments=False, normalize_functions=False).generate(tree)
    )


class _ValuesGenerator(BracketGenerator):
    """Writes VALUES in FROM in brackets: the tree does not tell which form the text has."""

    WRAP_DERIVED_VALUES = True


def bracketed(tree: exp.Expression, *, values: bool = False) -> str:
    """The same with brackets around every operation and, if asked for, around VALUES in FROM."""
    made = _ValuesGenerator if values else BracketGenerator
    generator = made(dialect=_VIEW_SQL, comments=False, normalize_functions=False)
    return str(generator.generate(tree))


def parsed(text: str) -> exp.Expression:
    """The tree of one statement; sqlglot's errors where it has none."""
    found = _VIEW_SQL.parse(text)
    tree = found[0] if found else None
    if not isinstance(tree, exp.Expression):
        raise ParseError("no statement")
    for call in list(tree.find_all(exp.Anonymous)):
        _name_unit(call)
    return tree


def _name_unit(call: exp.Anonymous) -> None:
    """The first of three arguments of DATEADD and the like is a word, not a column."""
    first = call.expressions[0] if len(call.expressions) == 3 else None
    named = str(call.name).upper() in _OF_UNITS
    if named and isinstance(first, exp.Column) and not first.table:
        first.replace(exp.Var(this=first.name))
