"""Pages: one HTML file each that needs nothing else. `engine` fills templates and makes tables; `perf`, `timeline`,
`faults` and `coverage` are the pages (that of tests is made by `report.test_report`).

One style sheet and a few scripts serve all of them: `timeline.js` with `timeline_model.js` (the places of lanes),
`timeline_drawing.js` and `timeline_pointed.js` (what lies under the pointer); `tables.js`; `grid.js` (the core grid);
and `page.js` (packed parts and the selection).
"""
