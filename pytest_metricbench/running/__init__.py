"""An experiment that runs, without pytest: attempts taken from the store or made, coverage measured, what is kept."""
