"""Pages: one HTML file each that needs nothing else. `engine` fills templates, `tables` says what a table is;
`testing`, `perf` and `timeline` are the pages. One style sheet and four scripts serve all: `timeline.js` (lanes over
time), `tables.js`, `grid.js` (the core grid) and `page.js` (parts that unpack, what is chosen)."""
