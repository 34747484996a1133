"""Results as lines and tables for a terminal: `text`, `plain_table` and `drawn_table` make tables, the other files fill
them."""
