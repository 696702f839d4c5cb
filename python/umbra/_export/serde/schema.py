"""The versions of the format that programs are written in."""
SCHEMA_VERSION = (8, 20)
TREESPEC_VERSION = 1
