"""Random streams that depend on the seed, on what they are for and on nothing else."""

import hashlib
from typing import TypeAlias

import numpy as np

Rng: TypeAlias = "np.random.Generator"
"""A text: numpy loads its random generators when they are first named, which costs a run that draws nothing 7 ms."""


def stream(seed: int, *purpose: str) -> Rng:
    """The generator of one purpose: the same for the same seed and words, independent of every other."""
    digest = hashlib.sha256("\0".join((str(seed), *purpose)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32).tolist())
