// Places: the checker counts lines and characters from 1, the editor counts units of UTF-16 from 0.

/** The offset of a line and column in a document; past its end, its end. */
export function offsetOf(doc, line, column) {
  const row = doc.line(Math.min(Math.max(line, 1), doc.lines));
  let units = 0;
  let characters = 1;
  for (const character of row.text) {
    if (characters >= column) break;
    units += character.length;
    characters += 1;
  }
  return row.from + units;
}

/** Line and column of an offset. */
export function placeOf(doc, offset) {
  const row = doc.lineAt(offset);
  return [row.number, [...row.text.slice(0, offset - row.from)].length + 1];
}
