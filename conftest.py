"""Only what pytest wants in the root: the plugins of our own tests."""

pytest_plugins = ["pytester"]
