"""What makes pages of the documentation out of the code: ``docs/make_reference.py`` runs it."""
