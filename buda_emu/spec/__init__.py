"""Tables of facts, pure data: formats, architectures, op types, attributes, TMs. Every other room derives from them."""
