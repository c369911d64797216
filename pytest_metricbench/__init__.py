"""pytest-metricbench: benchmark cases as tests, and whether a coverage metric predicts what they catch."""
