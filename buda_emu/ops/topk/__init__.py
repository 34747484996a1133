"""topk: the k greatest values of each row, or their indices, by a bitonic network."""
