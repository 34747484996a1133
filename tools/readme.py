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
    """Return the README for a package index. Links into the repository become absolute; without an address they become
    plain words, and pictures are left out."""

    def link(words: str, target: str) -> str:
        return f"[{words}]({repository.rstrip('/')}/blob/main/{target})" if repository else words

    def image(match: re.Match[str]) -> str:
        return f"![{match[1]}]({repository.rstrip('/')}/raw/main/{match[2]})\n\n" if repository else ""

    return _with_links(_IMAGE.sub(image, text), link)


def for_site(text: str) -> str:
    """Return the README as the first page of the site: links to pages of docs/ are kept, links to other files of the
    repository become words."""

    def link(words: str, target: str) -> str:
        inside = target.removeprefix("docs/")
        if target.startswith("#"):
            return f"[{words}]({target})"
        return f"[{words.removeprefix('docs/')}]({inside})" if inside != target else words

    return _with_links(text.replace("](docs/pictures/", "](pictures/"), link)


def page_for_site(text: str, name: str) -> str:
    """Return another page of the site, `name` as in docs/; links to files beside docs/, which the site does not have,
    become words."""

    def beside_docs(target: str) -> bool:
        return posixpath.normpath(posixpath.join(posixpath.dirname(name), target)).startswith("../")

    return _LINK.sub(lambda match: match[1] if beside_docs(match[2]) else match[0], without_marks(text))


def _with_links(text: str, link: Callable[[str, str], str]) -> str:
    """Return a text without marks, in which `link` has made each link that stays inside the repository."""

    def replace(match: re.Match[str]) -> str:
        words = match[1]
        target = match[2]
        if target.startswith(_ELSEWHERE):
            return match[0]
        return link(words, target)

    return _LINK.sub(replace, without_marks(text))


def without_marks(text: str) -> str:
    """Return a text without the comments that tests and generators look for."""
    return _MARK.sub("", text)


def pages(text: str) -> dict[str, list[str]]:
    """Return the pages of docs/ by the headings of the README's tables, in their order."""
    by_group: dict[str, list[str]] = {}
    group = ""
    for row in _ROW.finditer(text):
        if row["group"]:
            group = row["group"]
        else:
            by_group.setdefault(group, []).extend(re.findall(r"\]\(docs/([\w/-]+\.md)\)", row["pages"]))
    return by_group
