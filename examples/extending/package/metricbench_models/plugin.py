"""What the entry point names. pytest loads it in every run, so what it needs is imported when it is asked for."""


def pytest_metricbench_generators():
    from metricbench_models.mutants import Models

    return [Models]


def pytest_metricbench_text_operators():
    from metricbench_models.mutants import CALM

    return [CALM]
