"""Netlists in one layout (docs/netlists/fmt.md): spaces, indentation and blank lines are the formatter's, line breaks
inside brackets, comments and the spelling of values are the author's.

    source.py   the text as a tree of spans: where each value, bracket and block starts and ends
    gaps.py     what stands between values: punctuation, comments, line breaks
    layout.py   the rules of layout, on that tree
    format.py   the way in: text -> text, and the proof that nothing but the layout changed
"""
