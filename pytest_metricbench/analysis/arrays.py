"""The arrays that the analysis works on, by the type of what they hold; their shapes stand where they are used."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
WordArray: TypeAlias = npt.NDArray[np.uint64]
"""Sets as bits, 64 members a word."""
