"""Tests of the package, a folder for each of its parts; what they share is imported by its whole name."""
