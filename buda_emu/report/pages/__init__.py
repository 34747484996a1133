"""Pages: one HTML file each that needs nothing else. `engine` fills templates, `tables` says what a table is;
`testing`, `perf` and `timeline` are the pages. One style sheet and two scripts serve all: `page.js` (tables, pictures,
what is chosen) and `timeline.js` (lanes over time)."""
