"""fused_op: a schedule of sub-ops (`plan.py` unrolls it), run tile by tile where no tile depends on others
(`parts.py`), else op by op on whole tensors.
"""
