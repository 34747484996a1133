"""Reports about DarwiNN packages: a package on one screen, and a replay as text and as plain data."""
