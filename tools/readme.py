"""The README elsewhere than in the repository: on a package index, and as the first page of the docs' site."""

import posixpath
import re
from collections.abc import Callable

_IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+)\)\n*")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_ELSEWHERE = ("http://", "https://", "mailto:")
_MARK = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
_ROW = re.compile(r"^### (?P<group>.+)|^\| (?P<pages>\[docs/.*?) \| ", re.MULTILINE)


def for_index(text: str, repository: str = "") -> str:
    """What a package index shows: links into the repository are absolute; where it has no address, they are mere words
    and pictures are left out."""

    def link(words: str, target: str) -> str:
        return f"[{words}]({repository.rstrip('/')}/blob/main/{target})" if repository else words

    def image(found: re.Match[str]) -> str:
        return f"![{found[1]}]({repository.rstrip('/')}/raw/main/{found[2]})\n\n" if repository else ""

    return _with_links(_IMAGE.sub(image, text), link)


def for_site(text: str) -> str:
    """The first page of the site: links to pages of docs/, other files of the repository as words."""

    def link(words: str, target: str) -> str:
        inside = target.removeprefix("docs/")
        if target.startswith("#"):
            return f"[{words}]({target})"
        return f"[{words.removeprefix('docs/')}]({inside})" if inside != target else words

    return _with_links(text.replace("](docs/pictures/", "](pictures/"), link)


def page_for_site(text: str, name: str) -> str:
    """Another page of the site, `name` as in docs/: links to files beside docs/, which the site does not have, as
    words."""

    def beside_docs(target: str) -> bool:
        return posixpath.normpath(posixpath.join(posixpath.dirname(name), target)).startswith("../")

    return _LINK.sub(lambda found: found[1] if beside_docs(found[2]) else found[0], without_marks(text))


def _with_links(text: str, link: Callable[[str, str], str]) -> str:
    def replaced(found: re.Match[str]) -> str:
        words = found[1]
        target = found[2]
        if target.startswith(_ELSEWHERE):
            return found[0]
        return link(words, target)

    return _LINK.sub(replaced, without_marks(text))


def without_marks(text: str) -> str:
    """Without the comments that tests and generators look for."""
    return _MARK.sub("", text)


def pages(text: str) -> dict[str, list[str]]:
    """The pages of docs/ by the headings of the README's tables, in their order."""
    found: dict[str, list[str]] = {}
    group = ""
    for row in _ROW.finditer(text):
        if row["group"]:
            group = row["group"]
        else:
            found.setdefault(group, []).extend(re.findall(r"\]\(docs/([\w/-]+\.md)\)", row["pages"]))
    return found
