"""Lab 03, mirrored training: numbers of a global batch, auto-sharding, a mirrored program."""
