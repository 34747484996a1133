"""test-config: a netlist is fed, compared, looked at op by op, and thousands are run (NETLIST 5)."""
