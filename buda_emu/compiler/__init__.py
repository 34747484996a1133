"""Models to netlists: importer -> graph -> fold and decompose -> lower -> block and place -> text (docs/compile.md)."""
