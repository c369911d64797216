"""Small projects of every kind, in a folder, and what is written about them."""

from pathlib import Path

from pytest_metricbench.starting.start import BY_COMMAND, start


def make(folder: Path, files: dict[str, str]) -> Path:
    """Write files, and the folders that they need."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def begin(folder: Path, kind: str | None = None, *, here: Path | None = None) -> str:
    """What is said when an experiment is written into a folder."""
    return "\n".join(start(folder, here or folder, kind, BY_COMMAND))


TASK = {
    "task.toml": "[agent]\ntimeout_sec = 20.0\n[verifier]\ntimeout_sec = 20.0\n"
    '[environment]\ndocker_image = "debian:12"\nworkdir = "/app"\n',
    "instruction.md": "Write 3 into /app/answer.txt.\n",
    "environment/notes.txt": "buy milk\n",
    "tests/test.sh": '#!/bin/bash\nroot="${HARBOR_ROOT:-}"\n'
    'if [ "$(cat "$root/app/answer.txt" 2>/dev/null)" = 3 ]; then r=1; else r=0; fi\n'
    'echo "$r" > "$root/logs/verifier/reward.txt"\n',
    "solution/solve.sh": '#!/bin/bash\necho 3 > "${HARBOR_ROOT:-}/app/answer.txt"\n',
}
DATASET = {f"data/numbers/{task}/{name}": text for task in ("one", "two", "three") for name, text in TASK.items()}

SUITE = {
    "shop/__init__.py": "",
    "shop/prices.py": "def price(weight):\n    return weight + 1 if weight > 3 else weight\n",
    "tests/test_prices.py": "from shop.prices import price\n\n\ndef test_light():\n    assert price(1) == 1\n\n\n"
    "class TestHeavy:\n    def test_heavy(self):\n        assert price(5) == 6\n\n    def test_border(self):\n"
    "        assert price(3) == 3\n\n    def helper(self):\n        pass\n",
}

TABLE = {
    "out/results.csv": "model;problem id;run;passed;tokens\n"
    + "".join(
        f"{model};{problem};{run};{'PASS' if model == 'full' or problem == 'p1' else 'FAIL'};12\n"
        for model in ("full", "no tools", "42")
        for problem in ("p1", "p2", "p3", "p4")
        for run in (1, 2)
    )
}

PYTHON = {
    "my_agent.py": "import nothing_that_is_here\n\n\ndef helper(x):\n    return x\n\n\n"
    "def answer(question: str, *, model='m'):\n    return question\n",
    "system_prompt.md": "You must be nice.\n",
}

COMMAND = {"house-agent.sh": '#!/usr/bin/env bash\necho "you said: $1"\n', "build.sh": "#!/bin/sh\n", "notes.txt": ""}
