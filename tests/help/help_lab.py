"""The experiment of the tests of options and names."""

from typing import Final

EXPERIMENT: Final = """
metricbench: 1
name: shop
attempts: 2
runner: {kind: python, agent: "helped_agent:act"}
cases:
  - id: refunds
    tasks: [{id: late-purchase}, {id: no-receipt}]
    mutants: [{id: rude, description: Insults the customer.}]
coverage:
  - {id: tools, kind: python, measure: "helped_agent:share"}
"""
