"""Laying pipes between chips over the links of a cluster: what cores have left, and what becomes of each pipe."""
