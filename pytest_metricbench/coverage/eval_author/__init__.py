"""The ``eval-author`` coverage system: upstream's scripts, run by an interpreter of theirs."""
