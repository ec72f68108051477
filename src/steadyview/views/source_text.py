"""A view's text as tokens that know their places.

Everything the views room does with SQL is done on the text the user wrote: structure is read from
these tokens, and fragments are the user's own tokens with names replaced. No SQL generator is ever
asked to write an expression again, since generators translate (`from_utc_timestamp(a, z)` comes
back with a cast, `DATE '...'` as a cast), and a translation is another expression.

Invariant: `text[token.start:token.stop] == token.raw`, tokens ascend, brackets are paired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from sqlglot import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as LexerToken
from sqlglot.tokenizer_core import TokenType

from steadyview.errors import ViewRefused
from steadyview.views.reasons import BY_CODE, hint

_SPARK = Dialect.get_or_raise("spark")
_OPENING, _CLOSING = {"(": ")", "[": "]"}, {")", "]"}
_OPEN_ENDED = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`", re.S)
_WORD = re.compile(r"[^\W\d]", re.UNICODE)


@dataclass(frozen=True)
class Token:
    """One token: `word` is its upper-case text for keywords, bare names and symbols, else empty.

    `name` is the identifier it spells (quoted or bare), else empty. `value` is the content of a
    string literal, else None. `spaced`: something separates it from the token before.
    """

    raw: str
    start: int
    word: str
    name: str
    spaced: bool
    value: str | None = None

    @property
    def stop(self) -> int:
        """The offset just behind the token."""
        return self.start + len(self.raw)


@dataclass(frozen=True)
class TokenSpan:
    """Tokens number `start` up to, not including, `stop`."""

    start: int
    stop: int


class SourceText:
    """The text of one view, or of its SELECT, that starts at `line` and `column` of its file.

    `recomputed`: the view asks to be recomputed, so hints need not say that it could be.
    """

    def __init__(
        self, text: str, *, view: str, line: int = 1, column: int = 1, recomputed: bool = False
    ) -> None:
        self.text = text
        self.view = view
        self._recomputed = recomputed
        self._line = line
        self._column = column

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens; comments and hints are no tokens. SYNTAX_ERROR if the text has none such."""
        try:
            found = _SPARK.tokenize(self.text)
        except TokenError:
            offset = self._unended()
            fact, way = "has a text or comment without end", "end it by the same quote, or by */"
            raise self.refusal("SYNTAX_ERROR", offset, fact, instead=way) from None
        tokens: list[Token] = []
        stop = 0
        for token in found:
            # A literal such as 10L arrives as several tokens over the same characters.
            if token.start < stop or token.token_type is TokenType.HINT:
                continue
            tokens.append(_token(token, self.text, token.start > stop))
            stop = token.end + 1
        return tuple(tokens)

    @cached_property
    def partner(self) -> dict[int, int]:
        """Opening bracket to closing bracket, by number; SYNTAX_ERROR if one is unpaired."""
        pairs: dict[int, int] = {}
        waiting: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.word in _OPENING:
                waiting.append(i)
            elif token.word in _CLOSING:
                if not waiting or _OPENING[self.tokens[waiting[-1]].word] != token.word:
                    raise self._unpaired(token)
                pairs[waiting.pop()] = i
        if waiting:
            raise self._unpaired(self.tokens[waiting[-1]])
        return pairs

    def _unpaired(self, token: Token) -> ViewRefused:
        fact, way = f'has an unpaired "{token.raw}"', "write its partner, or take it out"
        return self.refusal("SYNTAX_ERROR", token.start, fact, instead=way)

    def word(self, index: int) -> str:
        """The word of token `index`, empty for names in quotes, literals, and beyond the ends."""
        return self.tokens[index].word if 0 <= index < len(self.tokens) else ""

    def slice(self, span: TokenSpan) -> str:
        """The text from the span's first token to its last, exactly as written."""
        if span.start >= span.stop:
            return ""
        return self.text[self.tokens[span.start].start : self.tokens[span.stop - 1].stop]

    def offset(self, index: int) -> int:
        """Where token `index` starts; the end of the text beyond the last."""
        return self.tokens[index].start if index < len(self.tokens) else len(self.text)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) in the file of the character at `offset`."""
        before = self.text[:offset]
        newline = before.rfind("\n")
        if newline < 0:
            return self._line, self._column + offset
        return self._line + before.count("\n"), offset - newline

    def refusal(
        self,
        code: str,
        offset: int,
        fact: str,
        *,
        instead: str | None = None,
        recompute: bool | None = None,
    ) -> ViewRefused:
        """The refusal of this view at `offset`: says the fact, shows the line, hints at a way.

        `instead` and `recompute` take the place of the reason's own where they are given.
        """
        line, column = self.place(offset)
        reason = BY_CODE[code]
        way = hint(
            reason.instead if instead is None else instead,
            recompute=reason.recompute if recompute is None else recompute,
            recomputed=self._recomputed,
            view=self.view,
        )
        return ViewRefused(
            code,
            f'view "{self.view}" {fact}',
            line=line,
            column=column,
            detail=f"line {line}, column {column}\n{self._excerpt(offset)}",
            hint=way or None,
        )

    def refuse_at(
        self,
        code: str,
        index: int,
        fact: str,
        *,
        instead: str | None = None,
        recompute: bool | None = None,
    ) -> ViewRefused:
        """`refusal` at token `index`."""
        offset = self.offset(index)
        return self.refusal(code, offset, fact, instead=instead, recompute=recompute)

    def _excerpt(self, offset: int) -> str:
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        line = self.text[begin : end if end >= 0 else len(self.text)]
        pad = re.sub(r"[^\t]", " ", line[: offset - begin])
        return f"  {line.rstrip()}\n  {pad}^"

    def _unended(self) -> int:
        rest = _OPEN_ENDED.sub(lambda ended: " " * len(ended[0]), self.text)
        found = re.search(r"['\"`]|/\*", rest)
        return found.start() if found else max(len(self.text) - 1, 0)


def _token(token: LexerToken, text: str, spaced: bool) -> Token:
    raw = text[token.start : token.end + 1]
    if token.token_type is TokenType.IDENTIFIER:
        return Token(raw, token.start, "", token.text, spaced)
    if raw[-1] in "'\"":
        return Token(raw, token.start, "", "", spaced, token.text)
    if token.token_type is TokenType.NUMBER:
        return Token(raw, token.start, "", "", spaced)
    word = " ".join(raw.upper().split())
    return Token(raw, token.start, word, raw if _WORD.match(raw) else "", spaced)
