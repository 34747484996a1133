"""Results in every form that people and programs read, made from one result object: `terminal`, `machine_readable`
(JSON, JUnit, annotations, traces), `pictures` (SVG, DOT) and `pages` (HTML); `baselines` tells known findings
from new ones.
"""
