"""What a notebook shows: highlighted TVMScript, and tables."""

from __future__ import annotations

import html
import io
import keyword
import token
import tokenize
from collections.abc import Iterable

#: Longest text that is shown; base 64 of constants is cut within its line.
MOST = 100_000
LINE = 200

_COLOURS = {
    "keyword": "#a626a4",
    "comment": "#6a737d",
    "string": "#22863a",
    "number": "#b75501",
    "name": "#005cc5",
}


def _span(kind: str, text: str) -> str:
    return f'<span style="color:{_COLOURS[kind]}">{html.escape(text)}</span>'


def _kind(kind: int, text: str, before: str) -> str | None:
    if kind == token.NAME and keyword.iskeyword(text):
        return "keyword"
    if kind == token.NAME and (text in {"T", "R", "I"} or before == "def"):
        return "name"
    return {
        token.COMMENT: "comment",
        token.STRING: "string",
        token.NUMBER: "number",
    }.get(kind)


def highlighted(text: str) -> str:
    """TVMScript as HTML; what cannot be told apart stays plain."""
    lines = [line if len(line) <= LINE else line[: LINE - 1] + "…" for line in text.splitlines()]
    short = "\n".join(lines)
    cut = len(short) > MOST
    short = short[:MOST]
    out: list[str] = []
    source = short.splitlines(keepends=True)
    row, column, before = 1, 0, ""
    try:
        for kind, word, start, end, _ in tokenize.generate_tokens(io.StringIO(short).readline):
            gap = ""
            while row < start[0]:
                gap += source[row - 1][column:] if row <= len(source) else ""
                row, column = row + 1, 0
            if row <= len(source):
                gap += source[row - 1][column : start[1]]
            out.append(html.escape(gap))
            name = _kind(kind, word, before)
            if kind not in {token.INDENT, token.DEDENT, token.NEWLINE, token.ENDMARKER}:
                out.append(_span(name, word) if name else html.escape(word))
                row, column = end
            before = word or before
    except (tokenize.TokenError, IndentationError, SyntaxError):
        out = [html.escape(short)]
    more = "\n…" if cut else ""
    return f'<pre style="line-height:1.3">{"".join(out)}{more}</pre>'


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as HTML."""
    titles = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
