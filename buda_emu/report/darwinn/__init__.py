"""Reports about DarwiNN packages: a package on one screen, a replay, a verification."""
