"""The compiler's IR as text and back, and what must hold of it at each level."""
