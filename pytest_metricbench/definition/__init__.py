"""The YAML of an experiment, checked and expanded, with the digests of all that its results depend on."""
