"""Random streams that depend on the seed, on what they are for and on nothing else."""

import hashlib

import numpy as np


def stream(seed: int, *purpose: str) -> np.random.Generator:
    """The generator of one purpose: the same for the same seed and words, independent of every other."""
    digest = hashlib.sha256("\0".join((str(seed), *purpose)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32).tolist())
