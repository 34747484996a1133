"""The small language of conditions: `nan(op:exp)`, `absmax(q) > 1e4`, `pcc(op:softmax, ideal) < 0.99 and $i == 3`.
Parsed into a tree and walked; nothing of Python is ever evaluated.
"""
