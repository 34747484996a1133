"""The document: YAML text with positions, frozen model, numbered rules, diagnostics. No numpy, no execution."""
