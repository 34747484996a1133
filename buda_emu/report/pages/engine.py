"""Fills the templates, and packs parts of a page that are unpacked when they are opened."""

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from buda_emu.screen import UNPRINTED

_ROOM: Final = "buda_emu.report"
_SCRIPTS: Final = (
    "timeline_model.js", "timeline_drawing.js", "timeline_pointed.js", "timeline.js", "tables.js", "grid.js", "page.js",
)  # fmt: skip
_CONTROL: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{UNPRINTED}\ud800-\udfff\ufffe\uffff]")


def render(template: str, **context: Any) -> Markup:
    """A template of `templates/` with all that it names. Texts are escaped, control characters become question marks;
    what is `Markup` stands as it is."""
    parts = {"style": _part("style.css"), "scripts": Markup().join(map(_part, _SCRIPTS))}
    return Markup(_environment().get_template(template).render(context, **parts))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(_ROOM, "pages/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


@cache
def _part(name: str) -> Markup:
    return Markup(files(_ROOM).joinpath("pages", name).read_text("utf-8"))


@cache
def chart_style(scope: str) -> str:
    """The CSS rules of charts and their colours, light and dark, limited to elements of a class, as in a notebook."""
    kept = [line for line in _part("style.css").splitlines() if line.startswith((":root", "--", "@media", "svg"))]
    text = "".join(kept).replace(":root", f".{scope}")
    return re.sub(r"(?<![-\w.])svg(?=[ .])", f".{scope} svg", text)


def _printable(value: object) -> object:
    return _CONTROL.sub("?", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def packed(part: Markup) -> Markup:
    """The part as text for a `<script class="packed">`: compressed, for `page.js` to unpack when it is to be seen."""
    return Markup(base64.b64encode(gzip.compress(part.encode("utf-8", "replace"), mtime=0)).decode())


def as_script(data: Mapping[str, Any] | Sequence[Any]) -> Markup:
    """Data as JSON that may stand in a script: nothing in a text ends it."""
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))
