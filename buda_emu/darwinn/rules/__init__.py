"""The numbered rules of DarwiNN packages, D001 to D086 (DARWINN 8), one declaration each, in files by subject."""
