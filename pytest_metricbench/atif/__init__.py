"""Traces of agents in the Agent Trajectory Interchange Format, read."""
