"""Rollouts of NeMo Gym, read as attempts."""
