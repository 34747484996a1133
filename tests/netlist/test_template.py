from netlist.netlist_texts import NETLIST, edited, found, rules


def test_placeholders_are_named_once() -> None:
    text = NETLIST.replace("entries: 2", "entries: $TEMPLATE_entries").replace("t: 1", "t: $TEMPLATE_t")
    (finding,) = found(text)
    assert (finding.rule, finding.text) == ("V000", "$TEMPLATE_entries")
    message = "this is a template, not a netlist: $TEMPLATE_entries, $TEMPLATE_t must be filled in"
    assert finding.diagnostic.message == message


def test_many_placeholders_are_counted() -> None:
    lines = "".join(f"k{number}: $TEMPLATE_{number}\n" for number in range(12))
    (finding,) = found(NETLIST + lines)
    assert "$TEMPLATE_7 and 4 more" in finding.diagnostic.message


def test_a_template_that_is_no_yaml_is_still_called_a_template() -> None:
    text = edited("graphs:\n", "$TEMPLATE_devices\ngraphs:\n")
    (finding,) = found(text)
    assert finding.text == "$TEMPLATE_devices"
    assert "template" in finding.diagnostic.message


def test_comments_may_speak_of_placeholders() -> None:
    assert rules(NETLIST + "# entries: $TEMPLATE_entries\n") == []
    assert rules(edited("\ngraphs:", " # $TEMPLATE_x\ngraphs:")) == []
    assert found("# $TEMPLATE_x\na: [")[0].diagnostic.message.startswith("invalid YAML")


def test_placeholders_in_names_and_quotes_count() -> None:
    assert rules(NETLIST + '"$TEMPLATE_a": 1\n') == ["V000"]
    assert rules(NETLIST + "a: &x ['$TEMPLATE_a']\nb: *x\n") == ["V000"]
