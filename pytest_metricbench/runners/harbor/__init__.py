"""The ``harbor`` runner: a Harbor trial an attempt."""
