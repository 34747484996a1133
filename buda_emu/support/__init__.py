"""The part that any program needs: errors, findings and rule books, files, caches, worker processes, lazy imports. It
knows neither netlists nor chips."""
