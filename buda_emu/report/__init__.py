"""One result object in every form that people and programs read: console, JSON, JUnit, Markdown, HTML, SVG, DOT."""
