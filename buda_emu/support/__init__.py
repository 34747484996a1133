"""What any program needs: errors, findings and rule books, files, caches, worker processes, lazy imports. Knows neither
netlists nor chips.
"""
