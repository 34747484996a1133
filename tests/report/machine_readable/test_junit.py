"""Results as JUnit XML: the structure that CI systems read."""

from xml.etree import ElementTree

from buda_emu.report.machine_readable.junit import junit_xml
from buda_emu.testing.verify.result import STATUSES, CaseResult, TestRun
from report.results import ODD_NAME, finished_run


def suite_of(run):
    text = junit_xml(run)
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites>')
    root = ElementTree.fromstring(text.encode())
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    properties = suite[0]
    found = {item.get("name"): item.get("value") for item in properties}
    assert (properties.tag, found) == ("properties", {"precision": "format", "expected": "ideal"})
    suite.remove(properties)
    return suite


def suite_with(*cases):
    return suite_of(TestRun(cases, "1", 2.0, {"precision": "format", "expected": "ideal"}))


def test_counts_and_elements_follow_the_statuses():
    made = [CaseResult(f"{status}.yaml", status, "it\nhappened") for status in STATUSES if status != "failed"]
    suite = suite_with(*made, finished_run().cases[2])
    assert {key: suite.get(key) for key in ("name", "tests", "failures", "errors", "skipped", "time")} == {
        "name": "buda-emu test",
        "tests": "9",
        "failures": "1",
        "errors": "6",
        "skipped": "1",
        "time": "2.000",
    }
    for element in suite:
        assert element.tag == "testcase"
        status = element.get("name").removesuffix(".yaml")
        tags = [child.tag for child in element]
        if status == "passed":
            assert tags == []
        elif status == "skipped":
            assert (tags, element[0].get("message")) == (["skipped"], "it")
        elif status == "lossy":
            assert (tags, element[0].get("type")) == (["failure"], "mismatch")
        else:
            assert (tags, element[0].get("type"), element[0].get("message")) == (["error"], status, "it")
            assert element[0].text.startswith("it\nhappened\n\n")


def test_a_failure_says_what_and_how_to_run_it_again():
    case = finished_run().cases[2]
    failure = suite_with(case)[0][0]
    assert failure.get("message") == f"o: {case.outputs[0].reason}"
    assert failure.text.startswith("o: PCC 0.99")
    assert failure.text.endswith(f"\n\nprecision format, expected ideal\n{case.command}")


def test_names_are_cut_into_folder_and_file():
    names = {
        "a.yaml": ("netlists", "a.yaml"),
        "x/y/a.yaml": ("x.y", "a.yaml"),
        "/x/a.yaml": ("x", "a.yaml"),
        "../x/./a.yaml": ("x", "a.yaml"),
    }
    for name, (folder, file) in names.items():
        (element,) = suite_with(CaseResult(name, "passed", seconds=0.5))
        assert (element.get("classname"), element.get("name"), element.get("time")) == (folder, file, "0.500")


def test_any_text_gives_well_formed_xml():
    suite = suite_of(finished_run())
    assert ODD_NAME in [element.get("name") for element in suite]
    (element,) = suite_with(CaseResult("\x00\x1b<&>\ud800\uffff.yaml", "error", 'a\x08"]]>\n\x7f'))
    assert element.get("name") == "<&>.yaml"
    assert element[0].get("message") == 'a"]]>'
    assert suite_with(CaseResult("a.yaml", "crashed"))[0][0].get("message") == "crashed"
