"""What each op type needs of its operands, attributes and formats (OPS 2, 6): a builder adds one op to a draft."""
