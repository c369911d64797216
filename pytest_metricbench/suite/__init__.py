"""Tests of another project, run one at a time against mutants of its source.

The runner ``suite`` speaks to a *warm* process that has imported pytest. For a variant and a test file that process
forks a *server*, which puts the mutated source in place, lets pytest collect the file and then forks once for each
attempt. :mod:`.warm`, :mod:`.inside`, :mod:`.inside_pytest`, :mod:`.overlay`, :mod:`.waiting` and :mod:`.child` run
there and import as little as they can; the other modules are the runner's side.
"""
