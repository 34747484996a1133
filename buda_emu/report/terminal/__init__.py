"""Results as lines and tables for a terminal: `text` and `fit` make tables, the other files say what stands in them."""
