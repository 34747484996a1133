"""Rules that other rooms and the reader find: their texts."""
