"""Bundles of the NeMo evaluator, read as attempts and written."""
