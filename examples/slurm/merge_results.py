#!/usr/bin/env python3
"""Merge what the tasks of a job array wrote: RESULTS/part-*.json and .xml into RESULTS/results.json and results.xml.

merge_results.py RESULTS PARTS     exit code 1 where a netlist failed, 2 where a part or the end of one is missing
"""

import json
import sys
import xml.etree.ElementTree as ET
from itertools import chain
from pathlib import Path


def main(folder: Path, count: int) -> int:
    """Merge the parts; a task that did not finish has none."""
    missing = [part for part in range(1, count + 1) if not (folder / f"part-{part}.json").exists()]
    if missing:
        print(f"{folder}: no results of part {', '.join(map(str, missing))} of {count}", file=sys.stderr)
        return 2
    documents = [json.loads((folder / f"part-{part}.json").read_text()) for part in range(1, count + 1)]
    for part, document in enumerate(documents, 1):
        if document["not_run"]:
            text = f"part {part} of {count} was ended early, {document['not_run']} of its netlists were not run"
            print(f"{folder}: {text}", file=sys.stderr)
            return 2
    cases = list(chain.from_iterable(document["cases"] for document in documents))
    merged = {
        **documents[0],
        "cases": sorted(cases, key=lambda case: case["netlist"]),
        "seconds": max(document["seconds"] for document in documents),
    }
    (folder / "results.json").write_text(json.dumps(merged, indent=1) + "\n")
    suites = ET.Element("testsuites")
    for part in range(1, count + 1):
        suites.extend(ET.parse(folder / f"part-{part}.xml").getroot())
    ET.ElementTree(suites).write(folder / "results.xml", encoding="utf-8", xml_declaration=True)
    failures = [case["netlist"] for case in cases if case["status"] not in ("passed", "skipped")]
    print(f"{len(cases)} netlists, {len(failures)} not passed", *failures, sep="\n  ")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
