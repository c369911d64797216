"""The ``helix`` runner: a job of a NeMo Helix server an attempt."""
