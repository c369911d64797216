"""A coverage system of our own: which share of the policy's branches do the baseline's traces take?

Every rule has two branches, it allows something or forbids it, and each should be taken by some task. Any program
can be a coverage system: it reads request.json in its working directory and writes response.json there, and
goals.json when it can tell which task reached which goal.
"""

import json


def main() -> None:
    request = load("request.json")
    universe: set[str] = set()
    by_task: dict[str, set[str]] = {}
    for task, files in request["evidence"].items():
        traces = [load(file["path"]) for file in files if file["name"] == "trajectory.json"]
        if not traces:
            save("response.json", {"value": None, "reason": f"task {task} left no trajectory.json"})
            return
        universe.update(*map(branches_known, traces))
        by_task[task] = set().union(*map(branches_taken, traces))
    taken = set().union(*by_task.values())
    save("response.json", {"value": len(taken) / len(universe)})
    save("goals.json", {"universe": sorted(universe), "by_task": {task: sorted(by_task[task]) for task in by_task}})


def branches_known(trace: dict) -> set[str]:
    return {f"{rule}:{way}" for rule in trace["agent"]["extra"]["rules"] for way in ("allows", "forbids")}


def branches_taken(trace: dict) -> set[str]:
    notes = [step["extra"] for step in trace["steps"] if "extra" in step]
    return {f"{note['rule']}:{note['outcome']}" for note in notes}


def load(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path: str, content: dict) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


if __name__ == "__main__":
    main()
