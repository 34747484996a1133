// Elements from texts: nothing that a netlist holds is ever read as HTML.

/** An element with a class and children, which are elements or texts. */
export function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** A button that looks like a link. */
export function link(text, follow) {
  const button = make("button", "link", text);
  button.type = "button";
  button.addEventListener("click", follow);
  return button;
}

/** A table in a box that scrolls by itself. */
export function table(headers, rows) {
  const head = make("tr", "", ...headers.map((text) => make("th", "", text)));
  const lines = rows.map((row) => make("tr", "", ...row.map((cell) => make("td", "", String(cell)))));
  return make("div", "wide", make("table", "", make("thead", "", head), make("tbody", "", ...lines)));
}

/** The Markdown that hovers are written in: paragraphs, rules, **bold**, `code`. */
export function fromMarkdown(text) {
  const box = make("div", "hover");
  for (const paragraph of text.split("\n\n")) {
    if (paragraph === "---") {
      box.append(make("hr"));
      continue;
    }
    const line = make("p");
    for (const part of paragraph.split(/(\*\*[^*]+\*\*|`[^`]+`)/)) {
      if (part.startsWith("**")) line.append(make("b", "", part.slice(2, -2)));
      else if (part.startsWith("`")) line.append(make("code", "", part.slice(1, -1)));
      else line.append(part);
    }
    box.append(line);
  }
  return box;
}
