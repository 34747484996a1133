"""Results for programs: JSON with its schemas, JUnit, annotations for code forges, traces, the vendor's names."""
