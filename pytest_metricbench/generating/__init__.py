"""Mutants that are made: generators, the operators they use, and how what they propose becomes reviewed mutants."""
