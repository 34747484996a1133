"""The document: YAML text with positions, frozen model, numbered rules, diagnostics. Pure data, no numpy, no execution."""
