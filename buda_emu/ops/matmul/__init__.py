"""matmul: dense (`dense.py`), and sparse by an encoding (`identity: true`, `sparse.py`), which only netlists with such
ops import. `tail.py` has what follows the product: bias, requantisation, gelu.
"""
