"""Machine-readable results: JSON with its schemas, JUnit, annotations for code forges, traces, and tables under the
vendor's names."""
