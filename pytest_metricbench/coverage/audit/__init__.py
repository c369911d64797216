"""The ``audit`` coverage system: the deterministic part of the Eval Author audit."""
