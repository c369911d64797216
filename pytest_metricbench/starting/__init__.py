"""The first experiment: what a folder holds, an experiment that suits it, and what to do next.

``looking`` finds out what there is (``agents``, ``tables``, ``projects``), ``about`` makes an experiment about it,
``proposing`` has one to copy where there is nothing, ``placing`` writes the files, ``start`` is the whole of it.
"""
