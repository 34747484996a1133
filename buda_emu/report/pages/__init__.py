"""Pages: one HTML file each that needs nothing else. `engine` fills templates, `tables` says what a table is;
`testing`, `perf` and `timeline` are the pages. One style sheet and a few scripts serve all: `timeline.js` (lanes over
time, and how one moves in them; `timeline_model.js` what stands where, `timeline_drawing.js` how it looks,
`timeline_pointed.js` what is under a point), `tables.js`, `grid.js` (the core grid) and `page.js` (parts that unpack,
what is chosen)."""
