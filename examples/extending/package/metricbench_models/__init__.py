"""Mutants of an agent that runs on a language model."""
