"""Arguments of the verbs that write and compare netlists as text."""
