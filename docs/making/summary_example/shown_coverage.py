"""Coverage systems of the example of a summary: which rules a task needs is known beforehand."""

RULES = {
    "late": ["date"],
    "damaged": ["photo"],
    "expensive": ["limit"],
    "late-expensive": ["date", "limit"],
    "receipt": ["photo", "receipt"],
    "gift": ["receipt"],
    "sale": ["date", "sale"],
    "greeting": [],
    "lost": ["track"],
    "delayed": ["track", "date"],
    "wrong-door": ["address"],
    "strike": ["date"],
}
WORDS = {task: [task[0], task[-1]] for task in RULES}


def rules(request):
    """The share of the rules that the tasks need."""
    return _share(request, RULES)


def words(request):
    """The share of the letters with which their names begin and end."""
    return _share(request, WORDS)


def opinion(request):
    """A number without goals; none for four tasks, and a failure for eight."""
    if len(request.tasks) == 8:
        raise ValueError("nobody reads eight tasks")
    if len(request.tasks) == 4:
        return {"value": None, "reason": "nobody has an opinion on four tasks"}
    return len(request.tasks) / 20


def _share(request, goals):
    universe = sorted({goal for found in goals.values() for goal in found})
    by_task = {task: goals[task] for task in request.tasks}
    covered = {goal for found in by_task.values() for goal in found}
    return {"value": len(covered) / len(universe), "goals": {"universe": universe, "by_task": by_task}}
